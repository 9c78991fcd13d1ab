/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret on the stack: the line that it reads lies there many times, between the frame of the
 * function that runs and the caller's return address, and in the registers that a call keeps.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>

#define N_MARKS 64

KNOWN void secret_leaf(const char (*marks)[32])
{
	for (volatile uint64_t i = 0; i < 1000000; i++)
		__asm__ volatile("" : : "r"(marks) : "memory");
}

KNOWN void secret_caller(const char *line)
{
	char marks[N_MARKS][32];

	for (int i = 0; i < N_MARKS; i++)
		memcpy(marks[i], line, sizeof(marks[i]));
	secret_leaf(marks);
	__asm__ volatile("" : : "r"(marks) : "memory");
}

int main(void)
{
	char line[64] = "";

	if (!fgets(line, sizeof(line), stdin) || strlen(line) < 32)
		return 1;
	for (;;)
		secret_caller(line);
}
