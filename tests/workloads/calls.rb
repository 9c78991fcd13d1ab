# frozen_string_literal: true

# Chains of calls that are known: chain_main, chain_turn, one of the chains between, and a leaf, which calls a C
# function of its own. For Ruby 2.7 and later.
# calls.rb once: prints each chain as Ruby itself sees it. calls.rb parked: waits in a chain that goes through all, and
# prints it with its lines. calls.rb threads: works in three threads. calls.rb passing: works in one thread after another,
# which libc's same one may serve.
require 'digest'
require 'digest/md5' # now: two threads that load it at once can fail
require 'fiber'
require 'zlib'

TEXT = 'perfwalk ' * 3000
NUMBERS = (1..400).map { |i| i * 7919 % 1009 }
MODE = ARGV[0]

def chain_md5
  chain_see Digest::MD5.digest(TEXT)
end

def chain_sort
  chain_see NUMBERS.sort
end

def chain_crc
  chain_see Zlib.crc32(TEXT)
end

def chain_join
  chain_see NUMBERS.join(',')
end

def chain_loop
  i = sum = 0
  while i < 1500
    sum += i % 7
    i += 1
  end
  chain_see sum
end

# What Ruby says of the chain that it is in, once.
def chain_see(result)
  puts caller_locations(1).map { |l| plain(l) }.reverse.join('|') if MODE == 'once'
  result
end

# Since 3.4 with the class.
def plain(location)
  location.label.sub(/(?<=\A| )[A-Z][\w:]*[.#]/, '')
end

def chain_outer(&leaf)
  chain_middle(&leaf)
  1
end

def chain_middle(&leaf)
  chain_inner(&leaf)
  1
end

def chain_inner
  yield
  1
end

def chain_deep(n = 20, &leaf)
  n.zero? ? leaf.call : chain_deep(n - 1, &leaf)
  1
end

def chain_each(&leaf)
  [1].each { |_| chain_called(&leaf) }
end

def chain_called
  yield
end

def chain_sort_by(&leaf)
  [2, 1].sort_by { |i| chain_called(&leaf); i }
end

def chain_fiber(&leaf)
  fiber = Fiber.new do
    Fiber.yield
    chain_in_fiber(&leaf)
  end
  fiber.resume
  fiber.resume
end

def chain_in_fiber
  yield
end

def chain_enumerate(&leaf)
  e = Enumerator.new { |y| y << 1; chain_in_fiber(&leaf); y << 2 }
  e.next
  e.next
end

def chain_rescue(&leaf)
  chain_raise(&leaf)
rescue ArgumentError
  leaf.call
end

def chain_raise(&leaf)
  raise ArgumentError, 'chain'
ensure
  leaf.call
end

# Calls of all kinds.
class Shape
  define_method(:chain_defined) { |leaf| chain_send(leaf) }

  def chain_send(leaf)
    send(:chain_private, leaf)
  end

  def method_missing(name, *arguments)
    name == :nothing ? arguments[0].call : super
  end

  def respond_to_missing?(name, all = false)
    name == :nothing || super
  end

  def self.chain_of_class(leaf)
    new.nothing(leaf)
  end

  private

  def chain_private(leaf)
    instance_exec { Shape.chain_of_class(leaf) }
  end
end

def chain_shape(&leaf)
  Shape.new.chain_defined(leaf)
end

def chain_eval(&leaf)
  eval('chain_evaluated(&leaf)', binding, '/evaluated.rb', 70_000)
end

def chain_evaluated
  yield
end

def chain_load(&leaf)
  $leaf = leaf
  load File.join(__dir__, 'calls-loaded.rb')
end

def chain_lambda(&leaf)
  ->(f) { f.call }.call(leaf)
end

# Behind the last two, chains begin anew.
BETWEEN = %i[chain_outer chain_deep chain_each chain_sort_by chain_rescue chain_shape chain_eval chain_load chain_lambda
             chain_enumerate chain_fiber].freeze
LEAVES = %i[chain_md5 chain_sort chain_crc chain_join chain_loop].freeze

def chain_turn(between, leaf)
  between ? send(between) { send(leaf) } : send(leaf)
end

def chain_main
  turns = 0
  loop do
    n = 0
    turns += 1
    [nil, *BETWEEN].each do |between|
      n += 1
      LEAVES.each { |leaf| chain_turn(between, leaf) }
    end
    break if MODE == 'once' || (MODE == 'passing' && turns == 20)
  end
end

# Innermost first: what is called, and the lines that they are at.
def chain_park
  # One line, as the program sleeps in it.
  caller_locations(0).each { |l| puts "#{l.lineno}|#{plain(l)}" } && ($stdout.flush || true) && sleep
end

def chain_through
  leaf = method(:chain_park).to_proc
  BETWEEN.each do |between|
    inner = leaf
    leaf = proc { send(between, &inner) }
  end
  leaf.call
end

case MODE
when 'parked' then chain_through
when 'passing' then loop { Thread.start { chain_main }.value }
when 'threads' then Array.new(3) { Thread.new { chain_main } }.each(&:join)
else chain_main
end
