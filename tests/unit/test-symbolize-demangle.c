/* SPDX-License-Identifier: Apache-2.0 */
/* Demangling: the names people expect, and names made to expand without end. */
#include <stdbool.h>

#include "symbolize/symbolize.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static void check(const char *mangled, const char *want)
{
	_cleanup_free_ char *s = symbol_demangle(mangled, SYMBOL_DEMANGLE_FULL);

	CHECK_STR(s ? s : "(not mangled)", want);
}

static void test_plain(void)
{
	static const char *const plain[] = {"main",   "",
					    "_",      "__libc_start_main",
					    "_init",  "_Z",
					    "_R",     "_D",
					    "Z3foo",  "runtime.main",
					    "_start", "printf@plt",
					    "_RNv",   "_Zxyz",
					    "_ZN",    "_DTOR"};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		check(plain[i], "(not mangled)");
}

static void test_cxx(void)
{
	check("_ZN3FooC1Ev", "Foo::Foo()");
	check("_Z3fooiPKc", "foo(int, char const*)");
	check("_Z3barIiET_S0_", "bar<int>(int)");
	check("_ZNSt6vectorIiSaIiEE9push_backEOi",
	      "std::vector<int, std::allocator<int> >::push_back(int&&)");
	check("_ZN2v88internal12_GLOBAL__N_13runEv", "v8::internal::(anonymous namespace)::run()");
	check("_ZZN3foo3barEvENKUlvE_clEv", "foo::bar()::{lambda()#1}::operator()() const");
	check("_Z3fooi.cold", "foo(int) [clone .cold]");
	check("_Z3fooi.llvm.1234567", "foo(int)");
	check("_Z3fooi@plt", "foo(int)@plt");
}

static void test_rust(void)
{
	check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.1234",
	      "core::fmt::Formatter::pad");
	check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.cold",
	      "core::fmt::Formatter::pad [clone .cold]");
	check("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
	      "3bar17h930b740aa94f1d3aE",
	      "<Test + 'static as foo::Bar<Test>>::bar");
	check("_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example");
	check("_RNvC6_123foo3bar", "123foo::bar");
	check("_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E",
	      "<const_generic::Unsigned<11>>");
	check("_RNvCs15kBYyAo9fc_7mycrate7example.llvm.99", "mycrate::example");
}

static void test_d(void)
{
	check("_D3std5stdio7writelnFZv", "std.stdio.writeln()");
	check("_Dmain", "D main");
	/* By gdc 12. */
	check("_D1d1C1mMFDFiZiZv", "d.C.m(int(int) delegate)");
	check("_D1d4mainFZ__T9__lambda4TiZQnFNaNbNiNfiZi.cold",
	      "d.main().__lambda4!(int).__lambda4(int) [clone .cold]");
	check("_D1d__T1tSQi4mainFZ9__lambda4Vai40ZQBcMFNfiZv",
	      "d.t!(d.main().__lambda4, '(').t(int)");
	check("_D1d__T1STiVAyaa5_6129622822ZQw3getMxFNaNbNiNfiZi",
	      "d.S!(int, \"a)b(\"\").S.get(int) const");
}

static void check_simple(const char *mangled, const char *want)
{
	_cleanup_free_ char *s = symbol_demangle(mangled, SYMBOL_DEMANGLE_SIMPLE);

	CHECK_STR(s ? s : "(not mangled)", want);
}

static void test_simple_cxx(void)
{
	check_simple("main", "(not mangled)");
	check_simple("_ZN3FooC1Ev", "Foo::Foo");
	check_simple("_ZN3FooD0Ev", "Foo::~Foo");
	check_simple("_Z3fooiPKc", "foo");
	check_simple("_Z3barIiET_S0_", "bar");
	check_simple("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back");
	check_simple("_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector::size");
	check_simple("_ZNR1AIiE1fEv", "A::f");
	check_simple("_ZN2v88internal12_GLOBAL__N_13runEv",
		     "v8::internal::(anonymous namespace)::run");
	check_simple("_ZZN3foo3barEvENKUliE_clEi", "foo::bar::{lambda#1}::operator()");
	/* auto outer<int>(int)::{lambda(auto:1)#1}::operator()<char>(char) const */
	check_simple("_ZZ5outerIiEDaT_ENKUlS0_E_clIcEEDaS0_", "outer::{lambda#1}::operator()");
	check_simple("_Z3fooi.cold", "foo [clone .cold]");
	check_simple("_Z3fooi@plt", "foo@plt");
	check_simple("_ZNSt7__cxx119to_stringB5cxx11Ei", "std::__cxx11::to_string");
	/* Operators, whose names are made of the brackets that go elsewhere. */
	check_simple("_ZlsRSoi", "operator<<");
	check_simple("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<<");
	check_simple("_ZN1AclEi", "A::operator()");
	check_simple("_ZN1AixEi", "A::operator[]");
	check_simple("_ZN1AptEv", "A::operator->");
	check_simple("_ZN1ApmEi", "A::operator->*");
	check_simple("_ZltIiEbRK1AIT_ES4_", "operator<");
	check_simple("_ZgtIiEbRK1AIT_ES4_", "operator>");
	check_simple("_ZmiIiE1AIT_ERKS2_S4_", "operator-");
	check_simple("_Znwm", "operator new");
	check_simple("_ZdaPv", "operator delete[]");
	check_simple("_ZN1AcvbEv", "A::operator bool");
	check_simple("_ZNK1AcvSt6vectorIiSaIiEEEv", "A::operator std::vector");
	check_simple("_Zli2_xy", "operator\"\" _x");
	check_simple("_ZN8operatorC1Ev", "operator::operator");
	/* Arguments that are expressions and functions. */
	check_simple("_Z1fIXgtLi1ELi2EEEvv", "f");
	check_simple("_Z1fIXadL_Z1giEEEvv", "f");
	check_simple("_Z1fIFiPFviEEEvT_", "f");
	check_simple("_ZThn16_N1A1fEv", "non-virtual thunk to A::f");
	check_simple("_ZTv0_n24_N1AIiE1fEv", "virtual thunk to A::f");
}

static void test_simple_rust(void)
{
	check_simple("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.cold",
		     "core::fmt::Formatter::pad [clone .cold]");
	check_simple("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		     "3bar17h930b740aa94f1d3aE",
		     "<Test + 'static as foo::Bar>::bar");
	check_simple("_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example");
	check_simple("_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE", "std::mem::align_of");
	check_simple("_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E",
		     "<const_generic::Unsigned>");
	check_simple("_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc3c_E", "<const_generic::Char>");
	check_simple("_ZN4core3str21_$LT$impl$u20$str$GT$5parse17h0123456789abcdefE",
		     "core::str::<impl str>::parse");
}

static void test_simple_d(void)
{
	check_simple("_D3std5stdio7writelnFZv", "std.stdio.writeln");
	check_simple("_Dmain", "D main");
	check_simple("_D1d1C1mMFDFiZiZv", "d.C.m");
	check_simple("_D1d1C6__ctorMFiZCQqQq", "d.C.this");
	check_simple("_D1d4mainFZ__T9__lambda4TiZQnFNaNbNiNfiZi", "d.main.__lambda4.__lambda4");
	check_simple("_D1d5outerFAiZ5innerMFNaNbNiNfiZi", "d.outer.inner");
	check_simple("_D1d__T1tSQi4mainFZ9__lambda4Vai40ZQBcMFNfiZv", "d.t.t");
	check_simple("_D1d__T1STiVAyaa5_6129622822ZQw3getMxFNaNbNiNfiZi", "d.S.S.get");
	check_simple("_D1d__T1STiVAyaa5_6129622822ZQw6__dtorMFNaNbNiNfZv", "d.S.S.~this");
}

static void test_none(void)
{
	CHECK(symbol_demangle("_Z3fooi", SYMBOL_DEMANGLE_NONE) == NULL);
}

static void check_bounded(const char *mangled)
{
	uint64_t start = clock_get_ns(CLOCK_PROCESS_CPUTIME_ID);
	_cleanup_free_ char *s = symbol_demangle(mangled, SYMBOL_DEMANGLE_FULL);

	CHECK_INT(s ? strlen(s) : 0, <, 40000);
	free(s);
	s = symbol_demangle(mangled, SYMBOL_DEMANGLE_SIMPLE);
	CHECK_INT(s ? strlen(s) : 0, <, 17000);
	CHECK_INT(clock_get_ns(CLOCK_PROCESS_CPUTIME_ID) - start, <, 3 * NSEC_PER_SEC);
}

/* Parameters c<a, a>, c<c<a, a>, c<a, a>>, ...: each the one before twice, by references to it. */
static void test_cxx_bomb(void)
{
	static const char digits[] = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1000];
	size_t n = (size_t)snprintf(name, sizeof(name), "_Z1f1a1cIS_S_E");
	char *s;

	for (const char *d = digits; *d; d++)
		n += (size_t)snprintf(name + n, sizeof(name) - n, "S0_IS%c_S%c_E", *d, *d);
	s = symbol_demangle(name, SYMBOL_DEMANGLE_FULL);
	CHECK(s != NULL);
	CHECK_INT(strlen(s), >, 16000);
	CHECK_INT(strlen(s), <, 17000);
	CHECK_STR(s + strlen(s) - 3, "...");
	free(s);
	check_bounded(name);
}

/* Rust's v0 has references to any earlier byte. */
static void test_rust_bomb(void)
{
	char name[1000];
	size_t n = (size_t)snprintf(name, sizeof(name), "_RINvC1a1bTeeE"), last = 8;
	char *s;

	for (int i = 0; i < 40; i++) {
		static const char digits[] =
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
		size_t here = n - 2;
		char ref[8];

		/* A reference to byte k is B, k - 1 in base 62, _ ; short of one digit. */
		if (last > 62)
			(void)snprintf(ref, sizeof(ref), "B%c%c_", digits[(last - 1) / 62],
				       digits[(last - 1) % 62]);
		else
			(void)snprintf(ref, sizeof(ref), "B%c_", digits[last - 1]);
		n += (size_t)snprintf(name + n, sizeof(name) - n, "T%s%sE", ref, ref);
		last = here;
	}
	(void)snprintf(name + n, sizeof(name) - n, "E");
	check_bounded(name);
	s = symbol_demangle(name, SYMBOL_DEMANGLE_FULL);
	CHECK(s != NULL);
	CHECK_INT(strlen(s), >, 16000);
	free(s);
}

/* D: the number of back references is limited, because its result is one allocated string. */
static void test_d_bomb(void)
{
	char name[1000];
	size_t n = (size_t)snprintf(name, sizeof(name), "_D1fFS1aB2ii");

	for (int i = 0; i < 100; i++)
		n += (size_t)snprintf(name + n, sizeof(name) - n, "B2QfQh");
	(void)snprintf(name + n, sizeof(name) - n, "Zv");
	check(name, "(not mangled)");
}

static void test_repeated(void)
{
	static const char *const units[] = {"_Z",  "N",	 "I",	    "P",       "_RIC0", "_RINvC",
					    "TB_", "S_", "_D1",	    "Q",       "F",	"K",
					    "B0_", "M",	 "1a",	    "Dp",      "sZ",	"_ZN1a",
					    "X",   "G",	 "_Z1fILi", "_RYTC1a", "cv"};
	static const char *const heads[] = {"_Z",	 "_ZN",	 "_R",	  "_D1a",
					    "_RNvC1a1b", "_Z1f", "_RIC1a"};
	char name[6000];

	for (size_t h = 0; h < ARRAY_SIZE(heads); h++)
		for (size_t u = 0; u < ARRAY_SIZE(units); u++)
			for (size_t length = 100; length < 5000; length = length * 3 + 50) {
				size_t n = (size_t)snprintf(name, sizeof(name), "%s", heads[h]);

				while (n + strlen(units[u]) < length)
					n += (size_t)snprintf(name + n, sizeof(name) - n, "%s",
							      units[u]);
				check_bounded(name);
			}
	memset(name, 'a', sizeof(name));
	memcpy(name, "_Z5000", 6);
	name[5999] = 0;
	check(name, "(not mangled)");
}

static void test_mutants(void)
{
	static const char *const seeds[] = {
		"_ZNSt6vectorIiSaIiEE9push_backEOi",
		"_ZZN3foo3barEvENKUlvE_clEv",
		"_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.cold",
		"_D3std5stdio7writelnFZv",
		"_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
		"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y"};
	static const char alphabet[] = "0123456789_$.NISTQBRZDKECPFMuvz@EEhi";
	char name[200];
	int n_demangled = 0;

	srand(17);
	for (int i = 0; i < 20000; i++) {
		char *s;
		size_t n;

		(void)snprintf(name, sizeof(name), "%s", seeds[(size_t)i % ARRAY_SIZE(seeds)]);
		n = strlen(name);
		for (int k = 0; k <= i % 4; k++)
			name[2 + (size_t)rand() % (n - 2)] =
				alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		s = symbol_demangle(name, SYMBOL_DEMANGLE_FULL);
		n_demangled += s != NULL;
		free(s);
		free(symbol_demangle(name, SYMBOL_DEMANGLE_SIMPLE));
	}
	CHECK_INT(n_demangled, >, 1000);
	CHECK_INT(n_demangled, <, 20000);
}

int main(void)
{
	RUN(test_plain);
	RUN(test_cxx);
	RUN(test_rust);
	RUN(test_d);
	RUN(test_simple_cxx);
	RUN(test_simple_rust);
	RUN(test_simple_d);
	RUN(test_none);
	RUN(test_cxx_bomb);
	RUN(test_rust_bomb);
	RUN(test_d_bomb);
	RUN(test_repeated);
	RUN(test_mutants);
	return 0;
}
