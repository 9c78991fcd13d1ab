# frozen_string_literal: true

# Four workers that are forked: each works in a chain of calls that is as deep as its pid says, and tells its pid and
# the chain as Ruby itself has it, outermost first.

def fork_spin
  names = caller_locations(0).map(&:label).grep(/^fork_/)
  i = 0
  i += 1 while i % 20_000 != 0 || fork_cpu < 0.75
  names.reverse
end

def fork_cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def fork_deep(n)
  n.zero? ? fork_spin : fork_deep(n - 1)
end

def fork_work
  fork_deep(Process.pid % 17)
end

# A worker begins with the CPU time of its own.
workers = Array.new(4) { fork { $stdout.syswrite("#{Process.pid} #{fork_work.join(' ')}\n") } }
workers.each { |pid| Process.wait(pid) }
