noinst_LIBRARIES += libsymbolize.a
libsymbolize_a_SOURCES = \
	symbolize/demangle.c \
	symbolize/elf-image.c symbolize/elf-image.h \
	symbolize/identify.c \
	symbolize/kallsyms.c \
	symbolize/perf-map.c \
	symbolize/sort.c symbolize/sort.h \
	symbolize/symbol-file.c \
	symbolize/symbol-plt.c symbolize/symbol-plt.h \
	symbolize/symbol-table.c symbolize/symbol-table.h \
	symbolize/symbolize.h
