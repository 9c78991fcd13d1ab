/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent for HotSpot that says what AsyncGetCallTrace() says of a thread that a signal
 * interrupts, at the thread's own CPU time: -agentpath:libasgct.so=FILE,PERIOD_NS. The handler
 * passes truth_mark() meanwhile, where a probe lets others look at the very same stack. When the
 * program ends, FILE has a line for each: the thread, its time before and behind the mark
 * (CLOCK_REALTIME), what the call returned, and the methods, innermost first.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <jvmti.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FRAMES = 128, MAX_RECORDS = 1 << 16 };

/* As in HotSpot's forte.cpp. */
struct call_frame {
	jint line;
	jmethodID method;
};

struct call_trace {
	JNIEnv *env;
	jint n;
	struct call_frame *frames;
};

struct truth {
	int64_t before_ns, behind_ns;
	int32_t tid;
	jint n;
	struct call_frame frames[MAX_FRAMES];
};

static jvmtiEnv *jvmti;
static const char *file;
static uint64_t period_ns = 1000000;
static void (*get_call_trace)(struct call_trace *trace, jint depth, void *context);
static struct truth *truths;
static atomic_uint n_truths;

static __thread JNIEnv *its_env __attribute__((tls_model("initial-exec")));
static __thread int its_event __attribute__((tls_model("initial-exec")));

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

__attribute__((noinline)) void truth_mark(void)
{
	__asm__ volatile("" : : : "memory");
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	unsigned int i = its_env ? atomic_fetch_add(&n_truths, 1) : MAX_RECORDS;

	(void)sig;
	(void)info;
	if (i < MAX_RECORDS) {
		struct truth *t = &truths[i];
		struct call_trace trace = {its_env, 0, t->frames};

		t->before_ns = now_ns();
		truth_mark();
		t->behind_ns = now_ns();
		get_call_trace(&trace, MAX_FRAMES, context);
		t->n = trace.n;
		t->tid = (int32_t)syscall(SYS_gettid);
	}
	(void)ioctl(its_event, PERF_EVENT_IOC_REFRESH, 1);
}

/* A signal to this thread for each period of its CPU time. */
static void start_signals(void)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof(a),
				    .config = PERF_COUNT_SW_CPU_CLOCK,
				    .sample_period = period_ns,
				    .wakeup_events = 1,
				    .disabled = 1};
	struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};

	its_event = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (its_event < 0 || fcntl(its_event, F_SETSIG, SIGPROF) < 0 ||
	    fcntl(its_event, F_SETOWN_EX, &owner) < 0 || fcntl(its_event, F_SETFL, O_ASYNC) < 0 ||
	    ioctl(its_event, PERF_EVENT_IOC_REFRESH, 1) < 0) {
		perror("asgct: a thread's CPU time");
		_exit(3);
	}
}

/* ---- What HotSpot calls ---- */

/* Their numbers must be there before: a handler can make none. */
static void number_methods(jclass class)
{
	jmethodID *methods = NULL;
	jint n;

	if ((*jvmti)->GetClassMethods(jvmti, class, &n, &methods) == JVMTI_ERROR_NONE)
		(void)(*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
}

static void JNICALL on_load(jvmtiEnv *e, JNIEnv *env, jthread thread, jclass class)
{
	/* AsyncGetCallTrace() wants it to be asked for. */
	(void)e, (void)env, (void)thread, (void)class;
}

static void JNICALL on_prepare(jvmtiEnv *e, JNIEnv *env, jthread thread, jclass class)
{
	(void)e, (void)env, (void)thread;
	number_methods(class);
}

static void JNICALL on_thread(jvmtiEnv *e, JNIEnv *env, jthread thread)
{
	(void)e, (void)thread;
	its_env = env;
	start_signals();
}

static void JNICALL on_thread_end(jvmtiEnv *e, JNIEnv *env, jthread thread)
{
	(void)e, (void)env, (void)thread;
	its_env = NULL;
	(void)close(its_event);
}

static void JNICALL on_init(jvmtiEnv *e, JNIEnv *env, jthread thread)
{
	jclass *classes = NULL;
	jint n = 0;

	if ((*e)->GetLoadedClasses(e, &n, &classes) == JVMTI_ERROR_NONE) {
		for (jint i = 0; i < n; i++)
			number_methods(classes[i]);
		(void)(*e)->Deallocate(e, (unsigned char *)classes);
	}
	on_thread(e, env, thread);
}

static void print_method(FILE *out, jmethodID method)
{
	char *name = NULL, *class_name = NULL;
	jclass class;

	if ((*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL) != JVMTI_ERROR_NONE ||
	    (*jvmti)->GetMethodDeclaringClass(jvmti, method, &class) != JVMTI_ERROR_NONE ||
	    (*jvmti)->GetClassSignature(jvmti, class, &class_name, NULL) != JVMTI_ERROR_NONE) {
		(void)fputs(" ?", out);
		return;
	}
	/* "Ljava/lang/Object;" */
	class_name[strcspn(class_name, ";")] = '\0';
	for (char *c = class_name; *c; c++)
		*c = *c == '/' ? '.' : *c;
	(void)fprintf(out, " %s.%s", class_name + 1, name);
}

static void JNICALL on_death(jvmtiEnv *e, JNIEnv *env)
{
	unsigned int n = atomic_load(&n_truths);
	FILE *out = fopen(file, "w");

	(void)e, (void)env;
	its_env = NULL;
	for (unsigned int i = 0; out && i < n && i < MAX_RECORDS; i++) {
		const struct truth *t = &truths[i];

		if (!t->tid) /* a handler that has not ended */
			continue;
		(void)fprintf(out, "%d %lld %lld %d", t->tid, (long long)t->before_ns,
			      (long long)t->behind_ns, t->n);
		for (jint k = 0; k < t->n && k < MAX_FRAMES; k++)
			print_method(out, t->frames[k].method);
		(void)fputc('\n', out);
	}
	if (!out || fclose(out) != 0)
		perror("asgct: its file");
}

static int set_events(void)
{
	static const jvmtiEvent events[] = {JVMTI_EVENT_CLASS_LOAD,   JVMTI_EVENT_CLASS_PREPARE,
					    JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END,
					    JVMTI_EVENT_VM_INIT,      JVMTI_EVENT_VM_DEATH};
	const jvmtiEventCallbacks calls = {.ClassLoad = on_load,
					   .ClassPrepare = on_prepare,
					   .ThreadStart = on_thread,
					   .ThreadEnd = on_thread_end,
					   .VMInit = on_init,
					   .VMDeath = on_death};

	if ((*jvmti)->SetEventCallbacks(jvmti, &calls, sizeof(calls)) != JVMTI_ERROR_NONE)
		return -1;
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
		if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL) !=
		    JVMTI_ERROR_NONE)
			return -1;
	}
	return 0;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
	char *period = strchr(options, ',');

	(void)reserved;
	if (period) {
		*period = '\0';
		period_ns = strtoull(period + 1, NULL, 10);
	}
	file = strdup(options);
	truths = mmap(NULL, sizeof(*truths) * MAX_RECORDS, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*(void **)&get_call_trace = dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
	if (!get_call_trace) {
		void *jvm = dlopen("libjvm.so", RTLD_NOW | RTLD_NOLOAD);

		*(void **)&get_call_trace = jvm ? dlsym(jvm, "AsyncGetCallTrace") : NULL;
	}
	if (!get_call_trace || truths == MAP_FAILED || sigaction(SIGPROF, &action, NULL) < 0 ||
	    (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_0) != JNI_OK || set_events() < 0) {
		(void)fprintf(stderr, "asgct: this VM cannot be asked\n");
		return JNI_ERR;
	}
	return JNI_OK;
}
