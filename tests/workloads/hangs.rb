# SPDX-License-Identifier: Apache-2.0
# Threads that hang in every way that Ruby has. Each says in which methods, from the outermost on, before it does.
def tell
  names = caller.map { |x| x[/in [`'](.*)'/, 1] }
  $stdout.write(names.reject { |x| %w[each map times].include?(x) }.reverse.join(";") + "\n")
  $stdout.flush
end

$mutex = Mutex.new
$mutex.lock

def in_sleep
  tell
  sleep
end

def in_queue
  tell
  Queue.new.pop
end

def in_read
  tell
  IO.pipe[0].read(1)
end

def in_mutex
  tell
  $mutex.lock
end

def deep(n)
  n.zero? ? in_sleep : deep(n - 1)
end

%i[in_queue in_read in_mutex].each { |f| Thread.new { send(f) } }
Thread.new { deep(10) }

def in_main
  tell
  IO.pipe[0].read(1)
end

in_main
