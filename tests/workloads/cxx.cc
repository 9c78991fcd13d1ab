// SPDX-License-Identifier: Apache-2.0
// Threads that run templates, and exceptions thrown through frames with destructors.
#include <stdexcept>
#include <string>
#include <thread>
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
		SPIN(SPIN_SHORT);
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

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 2; i++)
		threads.emplace_back(shop::work);
	for (auto &t : threads)
		t.join();
}
