// SPDX-License-Identifier: Apache-2.0
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * OwnWaits ROUNDS: threads that wait in several ways. Prints for each method how many nanoseconds it
 * waited by the program's own clocks, wall time less CPU time: for sure, and in calls in which its
 * thread was also preempted. In each of the ROUNDS calls it waits for 7 (naps), 4 (locks) or 3 ms
 * (dozes, parks, takes), or longer.
 */
public class OwnWaits {
    interface Wait {
        void call() throws Exception;
    }

    static final Object lock = new Object(), box = new Object();
    static final ThreadMXBean clock = ManagementFactory.getThreadMXBean();
    static final Map<String, long[]> sums = new TreeMap<>();
    static final AtomicInteger permits = new AtomicInteger();
    static int things;

    static void naps() throws Exception {
        Thread.sleep(7);
    }

    static void dozes() throws Exception {
        Thread.sleep(3);
    }

    static void parks() {
        while (permits.get() == 0)
            LockSupport.park();
        permits.decrementAndGet();
    }

    static void locks() {
        synchronized (lock) {
        }
    }

    static void takes() throws Exception {
        synchronized (box) {
            while (things == 0)
                box.wait();
            things--;
        }
    }

    static long preempted() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/thread-self/status")))
            if (line.startsWith("nonvoluntary"))
                return Long.parseLong(line.split("\\s+")[1]);
        return 0;
    }

    static void told(String name, Wait wait) throws Exception {
        long before = preempted(), wall = System.nanoTime(), cpu = clock.getCurrentThreadCpuTime();
        wait.call();
        long ns = Math.max(0, System.nanoTime() - wall - (clock.getCurrentThreadCpuTime() - cpu));
        sums.get(name)[preempted() > before ? 1 : 0] += ns;
    }

    /** The thread waits by now, as long as until we return and longer. */
    static void until(Thread t, Thread.State state, int more) throws Exception {
        while (t.getState() != state)
            Thread.sleep(1);
        Thread.sleep(more);
    }

    static Thread start(int rounds, Wait round) {
        Thread t = new Thread(() -> {
            try {
                for (int i = 0; i < rounds; i++)
                    round.call();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        });
        t.start();
        return t;
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        for (String name : new String[] {"naps", "dozes", "parks", "locks", "takes"})
            sums.put(name, new long[2]);
        Thread waiter = start(rounds, () -> {
            told("parks", OwnWaits::parks);
            told("locks", OwnWaits::locks);
            told("takes", OwnWaits::takes);
        });
        Thread sleeper = start(rounds, () -> {
            told("naps", OwnWaits::naps);
            told("dozes", OwnWaits::dozes);
        });
        Thread giver = start(rounds, () -> {
            synchronized (lock) {
                until(waiter, Thread.State.WAITING, 3);
                permits.incrementAndGet();
                LockSupport.unpark(waiter);
                until(waiter, Thread.State.BLOCKED, 4);
            }
            until(waiter, Thread.State.WAITING, 3);
            synchronized (box) {
                things++;
                box.notify();
            }
        });
        for (Thread t : new Thread[] {waiter, sleeper, giver})
            t.join();
        sums.forEach((name, s) -> System.out.println(name + " " + s[0] + " " + s[1]));
    }
}
