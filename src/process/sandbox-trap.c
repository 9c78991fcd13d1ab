/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a process that makes a refused call names it and exits, so that no test can overlook
 * it. The call itself is not executed, so this mode weakens nothing.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "src/process/sandbox-internal.h"
#include "util/cleanup.h"
#include "util/log.h"

#define EXIT_TRAPPED 159 /* as in a shell after SIGSYS */

static const struct {
	int number;
	const char *name;
} names[] = {
#include "src/process/syscall-names.h"
};

static const char *name_of(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (names[i].number == number)
			return names[i].name;
	}
	return "?";
}

static unsigned long argument(const ucontext_t *u, int i)
{
#if defined(__x86_64__)
	static const int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};

	return (unsigned long)u->uc_mcontext.gregs[registers[i]];
#elif defined(__riscv)
	return (unsigned long)u->uc_mcontext.__gregs[REG_A0 + i];
#else
	return (unsigned long)u->uc_mcontext.regs[i];
#endif
}

/* The call itself raises this signal, so it interrupts only code that enters the kernel. */
static void on_refusal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;

	log_error("sandbox: the call %s (%d) was refused: arguments 0x%lx, 0x%lx, 0x%lx, 0x%lx",
		  name_of(info->si_syscall), info->si_syscall, argument(u, 0), argument(u, 1),
		  argument(u, 2), argument(u, 3));
	_exit(EXIT_TRAPPED);
}

void sandbox_trap_calls(void)
{
	struct sigaction sa = {.sa_sigaction = on_refusal, .sa_flags = SA_SIGINFO};

	(void)sigaction(SIGSYS, &sa, NULL);
}
