/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Compressed bodies, by the names that HTTP and gRPC have for them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Their numbers are in the files of the spool, too. */
enum encoding { ENCODING_IDENTITY, ENCODING_GZIP, ENCODING_ZSTD, N_ENCODINGS };

/* As in Content-Encoding. */
const char *encoding_name(enum encoding encoding);
/* zstd may be missing from this build. */
bool encoding_supported(enum encoding encoding);

struct encoder;
/* n_input: how much will come; 0: not known. 0; -EOPNOTSUPP; -ENOMEM. */
int encoder_new(struct encoder **ret, enum encoding encoding, size_t n_input);
/* last: of all; once. 0, -ENOMEM or -EIO. */
int encoder_put(struct encoder *e, const uint8_t *bytes, size_t n, bool last);
/* What came out: the caller's to free, and no more of the encoder's. */
uint8_t *encoder_take(struct encoder *e, size_t *ret_n);
struct encoder *encoder_free(struct encoder *e);
DEFINE_CLEANUP(struct encoder *, encoder_free)

/* How many bytes there were before; 0: it does not say. */
size_t encoding_size(enum encoding encoding, const uint8_t *bytes, size_t n);
/*
 * Undoes it: *ret is the caller's. 0; -EBADMSG: the bytes are no such thing, or cut off; -EFBIG:
 * more than max_bytes; -EOPNOTSUPP; -ENOMEM.
 */
int encoding_decode(enum encoding encoding, const uint8_t *bytes, size_t n, size_t max_bytes,
		    uint8_t **ret, size_t *ret_n);
