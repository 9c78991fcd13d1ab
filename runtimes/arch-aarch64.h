/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Instructions of aarch64. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORD = 4 };

static inline uint32_t word_at(const uint8_t *code, size_t i)
{
	uint32_t word;

	memcpy(&word, code + i * WORD, sizeof(word));
	return word;
}

/* It does nothing on a processor that does not know it: signs or checks a return address, or is a
 * place to jump to. */
static inline bool is_hint(uint32_t word)
{
	return (word & 0xfffff01f) == 0xd503201f;
}
