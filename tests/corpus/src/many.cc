// SPDX-License-Identifier: Apache-2.0
// Work for a compiler, without headers: so many instances, each with loops to turn around.
template <int n> struct many {
	static int sum(int *a)
	{
		int s = n;

		for (int i = 0; i < n + 16; i++)
			for (int k = i; k < n + 8; k++)
				s += a[k] * a[i] + (a[k ^ i] >> (n & 7));
		return s ^ many<n - 1>::sum(a + 1);
	}
};
template <> struct many<0> {
	static int sum(int *a) { return a[0]; }
};
int all(int *a)
{
	return many<250>::sum(a);
}
