// SPDX-License-Identifier: Apache-2.0
// Threads that run templates, and exceptions thrown through frames with destructors. Before them,
// "cxx landing" prints where in libgcc a throw has lost its return address.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unwind.h>
#include <vector>
#include "common.h"

namespace shop {

struct Guard {
	explicit Guard(int n) : n(n) {}
	~Guard() { KEEP_FRAME(); }
	int n;
};

template <typename T> struct Counter {
	KNOWN T leaf(T x)
	{
		SPIN_SHARE(50);
		return x + 1;
	}
	template <int Depth> KNOWN T descend(T x)
	{
		T r;
		if constexpr (Depth == 0)
			r = leaf(x);
		else
			r = descend<Depth - 1>(x);
		KEEP_FRAME();
		return r;
	}
};

KNOWN int thrower(int depth)
{
	Guard guard(depth);
	if (depth == 0)
		throw std::runtime_error("out of stock");
	int r = thrower(depth - 1);
	KEEP_FRAME();
	return r + guard.n;
}

KNOWN int catcher()
{
	try {
		return thrower(12);
	} catch (const std::exception &e) {
		return static_cast<int>(std::string(e.what()).size());
	}
}

KNOWN void work()
{
	volatile long sink = 0;
	Counter<long> counter;
	for (;;) {
		for (int i = 0; i < 20; i++)
			sink = sink + counter.descend<3>(sink);
		for (int i = 0; i < 60; i++)
			sink = sink + catcher();
	}
}

} // namespace shop

// Before _Unwind_RaiseException() jumps to a landing pad it writes over its own return address (and
// registers), so that it returns there. From then on no unwinder can know who called it: one
// throw is stepped through, and each instruction that finds the address changed is printed.
#ifdef __x86_64__
namespace landing {

constexpr greg_t trap_flag = 0x100;
constexpr size_t max_found = 4096;
extern "C" char __executable_start, etext;

bool stepping;
const uint64_t *slot; // of the return address, while it is watched
uint64_t value;
uint64_t found[max_found];
size_t n_found;

void step(int, siginfo_t *, void *context)
{
	greg_t *regs = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
	const uint64_t pc = regs[REG_RIP], sp = regs[REG_RSP];

	regs[REG_EFL] = stepping ? regs[REG_EFL] | trap_flag : regs[REG_EFL] & ~trap_flag;
	if (pc == reinterpret_cast<uint64_t>(&_Unwind_RaiseException)) {
		slot = reinterpret_cast<const uint64_t *>(sp);
		value = *slot;
	} else if (pc >= reinterpret_cast<uint64_t>(&__executable_start) &&
		   pc < reinterpret_cast<uint64_t>(&etext)) {
		slot = nullptr; // it has landed
	} else if (slot && (sp > reinterpret_cast<uint64_t>(slot) || *slot != value) &&
		   n_found < max_found) {
		found[n_found++] = pc;
	}
}

void print()
{
	struct sigaction action = {};
	Dl_info libgcc;

	shop::catcher(); // binds what is bound at the first call
	action.sa_sigaction = step;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &action, nullptr);
	stepping = true;
	raise(SIGTRAP);
	shop::catcher();
	stepping = false;
	if (!dladdr(reinterpret_cast<void *>(&_Unwind_RaiseException), &libgcc))
		return;
	for (size_t i = 0; i < n_found; i++)
		printf("%lx ", found[i] - reinterpret_cast<uint64_t>(libgcc.dli_fbase));
	puts("");
	fflush(stdout);
}

} // namespace landing
#else
namespace landing {
void print()
{
}
} // namespace landing
#endif

int main(int argc, char **argv)
{
	if (argc > 1 && std::strcmp(argv[1], "landing") == 0)
		landing::print();
	std::vector<std::thread> threads;
	for (int i = 0; i < 2; i++)
		threads.emplace_back(shop::work);
	for (auto &t : threads)
		t.join();
}
