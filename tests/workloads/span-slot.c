/* SPDX-License-Identifier: Apache-2.0 */
/* The variable of each thread that points to its context (OTEP 4947), in a program or library. */
__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1;

#ifdef MORE_VARIABLES
/* So many that a C library has no room for those of the first thread among its own. */
__attribute__((used)) static __thread char more[4000] __attribute__((aligned(64)));
#endif

__attribute__((visibility("default"))) void **span_slot(void)
{
	return &otel_thread_ctx_v1;
}
