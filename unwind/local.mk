noinst_LIBRARIES += libunwind.a
libunwind_a_SOURCES = \
	unwind/arch.h \
	unwind/arch-x86_64.c \
	unwind/cfi.c \
	unwind/debug-frame.c \
	unwind/entry.c \
	unwind/expr.c \
	unwind/guard.c \
	unwind/internal.h \
	unwind/module.c \
	unwind/rows.c \
	unwind/step.c \
	unwind/unwind.h \
	unwind/vet.c \
	unwind/walk.c
