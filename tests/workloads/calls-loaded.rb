# frozen_string_literal: true

# For calls.rb: code of a file, with $leaf.
def chain_of_file
  $leaf.call
end

chain_of_file
