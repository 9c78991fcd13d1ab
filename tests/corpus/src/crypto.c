/* SPDX-License-Identifier: Apache-2.0 */
/* libcrypto's functions in assembler. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"

volatile int sink;
typedef unsigned char *sum_fn(const unsigned char *data, size_t n, unsigned char *md);
typedef int key_fn(const unsigned char *key, int bits, void *ret);
typedef void aes_fn(const unsigned char *in, unsigned char *out, const void *key);

int main(void)
{
	void *lib = dlopen("libcrypto.so.3", RTLD_NOW);
	static unsigned char data[4096], md[64], key[1024];
	sum_fn *sums[4];
	key_fn *set_key;
	aes_fn *encrypt;

	if (!lib)
		return 1;
	sums[0] = (sum_fn *)dlsym(lib, "SHA1");
	sums[1] = (sum_fn *)dlsym(lib, "SHA256");
	sums[2] = (sum_fn *)dlsym(lib, "SHA512");
	sums[3] = (sum_fn *)dlsym(lib, "MD5");
	set_key = (key_fn *)dlsym(lib, "AES_set_encrypt_key");
	encrypt = (aes_fn *)dlsym(lib, "AES_encrypt");
	for (int i = 0; i < 4; i++) {
		sums[i](data, 130, md);
		MARK();
		sums[i](data, 130, md);
		MARK();
	}
	set_key(data, 128, key);
	MARK();
	set_key(data, 128, key);
	encrypt(data, md, key);
	MARK();
	return 0;
}
