/* SPDX-License-Identifier: Apache-2.0 */
/* main > outer > inner, the last inlined: what a separate debug file has to tell. */
static inline __attribute__((always_inline)) unsigned long inner(unsigned long a)
{
	for (int i = 0; i < 1000; i++)
		a = a * 31 + (a >> 7);
	return a;
}

__attribute__((noinline)) unsigned long outer(unsigned long a)
{
	return inner(a) ^ 5;
}

volatile unsigned long total;

int main(void)
{
	for (;;)
		total = outer(total);
}
