/* SPDX-License-Identifier: Apache-2.0 */
/* What each analyser has to find before its silence about other files means anything. */
int bug(int n);

int bug(int n)
{
	int sum;

	return sum + n;
}
