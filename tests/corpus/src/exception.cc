// SPDX-License-Identifier: Apache-2.0
// A C++ exception in flight: every step of the runtime that looks for its handler.
#include <stdexcept>
#include <string>

#include "mark.h"

volatile int sink;

struct guard {
	std::string text;
	~guard() { sink += (int)text.size(); }
};

static NOINLINE void thrower(int n)
{
	guard g{std::string(40, 'x')};

	if (n == 0)
		throw std::runtime_error("in flight");
	thrower(n - 1);
	sink++;
}

static NOINLINE int catcher(int n)
{
	try {
		thrower(n);
	} catch (const std::exception &e) {
		return e.what()[0];
	}
	return 0;
}

int main()
{
	sink += catcher(1);
	MARK();
	sink += catcher(2);
	MARK();
	return 0;
}
