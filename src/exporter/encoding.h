/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Compressed bodies, by the names that HTTP and gRPC have for them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Their numbers are in the files of the spool, too. */
enum encoding { ENCODING_IDENTITY, ENCODING_GZIP, ENCODING_ZSTD, N_ENCODINGS };

/* Its name in Content-Encoding; static. */
const char *encoding_name(enum encoding encoding);
/* zstd may be missing from this build. */
bool encoding_supported(enum encoding encoding);

struct encoder;
/* n_input: the size of the whole input; 0: unknown. 0; -EOPNOTSUPP: not in this build; -ENOMEM. */
int encoder_new(struct encoder **ret, enum encoding encoding, size_t n_input);
/* Adds bytes. last: set once, for the last ones. 0, -ENOMEM or -EIO. */
int encoder_put(struct encoder *e, const uint8_t *bytes, size_t n, bool last);
/* Returns the output, which the caller frees. */
uint8_t *encoder_take(struct encoder *e, size_t *ret_n);
struct encoder *encoder_free(struct encoder *e);
DEFINE_CLEANUP(struct encoder *, encoder_free)

/* The size of the decoded bytes, as the encoded ones claim it; 0: they do not say. */
size_t encoding_size(enum encoding encoding, const uint8_t *bytes, size_t n);
/*
 * Decodes n bytes; the caller frees *ret. 0; -EBADMSG: they are damaged or cut off; -EFBIG: the
 * result is larger than max_bytes; -EOPNOTSUPP: not in this build; -ENOMEM.
 */
int encoding_decode(enum encoding encoding, const uint8_t *bytes, size_t n, size_t max_bytes,
		    uint8_t **ret, size_t *ret_n);
