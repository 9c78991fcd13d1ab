noinst_LIBRARIES += libsymbolize.a
libsymbolize_a_SOURCES = \
	symbolize/elf-image.c symbolize/elf-image.h \
	symbolize/sort.c symbolize/sort.h \
	symbolize/symbol-file.c \
	symbolize/symbol-plt.c symbolize/symbol-plt.h \
	symbolize/symbol-table.c symbolize/symbol-table.h \
	symbolize/symbolize.h
