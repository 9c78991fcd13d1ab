# The allocation library, for any program on this host: nothing of a C library is linked, and none of
# the flags that others are built with.
EXTRA_DIST += alloc/alloc.c alloc/arch.h alloc/arch-aarch64.c alloc/arch-x86_64.c
# riscv64 has none yet: its atomic operations on bytes are calls of a library.
if !RISCV64
if AARCH64
alloc_arch = alloc/arch-aarch64.c
# Else each atomic instruction is a call of the compiler's library.
ALLOC_ARCH_FLAGS = -mno-outline-atomics
else
alloc_arch = alloc/arch-x86_64.c
ALLOC_ARCH_FLAGS =
endif
ALLOC_FLAGS = -std=gnu11 -O2 -Wall -Wextra -fPIC -shared -nostdlib -fvisibility=hidden -fno-builtin \
	-fno-stack-protector -fasynchronous-unwind-tables -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,--build-id -Wl,-soname,libperfwalk-alloc.so
alloclibdir = $(libdir)/perfwalk
alloclib_DATA = alloc/libperfwalk-alloc.so
CLEANFILES += alloc/libperfwalk-alloc.so
alloc/libperfwalk-alloc.so: alloc/alloc.c $(alloc_arch) alloc/arch.h
	$(AM_V_GEN)$(MKDIR_P) alloc && $(CC) $(ALLOC_FLAGS) $(ALLOC_ARCH_FLAGS) -I$(srcdir) -o $@ $(srcdir)/alloc/alloc.c \
		$(srcdir)/$(alloc_arch)
endif
