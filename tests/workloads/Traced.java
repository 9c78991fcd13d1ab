// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;

/** Threads that work in spans, nested, which Datadog's agent makes of two methods. Each span is a line: its id as a
 * number, the thread, the method that works in it. */
public class Traced {
    static final Method SPAN_ID;
    static volatile long sink;

    static {
        try {
            SPAN_ID = Class.forName("datadog.trace.api.CorrelationIdentifier").getMethod("getSpanId");
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    static void tell(String method) {
        try {
            System.out.println(SPAN_ID.invoke(null) + " " + Thread.currentThread().getName() + " " + method);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    static void spin() {
        for (int i = 0; i < 30000000; i++)
            sink += i;
    }

    static void in_none() {
        spin();
    }

    static void in_inner() {
        spin();
    }

    static void in_outer() {
        spin();
    }

    static void inner() {
        tell("in_inner");
        in_inner();
    }

    static void outer() {
        tell("in_outer");
        in_outer();
        inner();
        in_outer();
    }

    static void work() {
        for (;;) {
            outer();
            in_none();
        }
    }

    public static void main(String[] args) {
        new Thread(Traced::work, "second").start();
        Thread.currentThread().setName("first");
        work();
    }
}
