// SPDX-License-Identifier: Apache-2.0

// Goroutines with methods and closures; the garbage collector has something to do.
package main

type account struct{ balance uint64 }

var sink []byte

//go:noinline
func (a *account) leaf(n uint64) uint64 {
	for i := uint64(0); i < 20000; i++ {
		a.balance ^= i * n
	}
	return a.balance
}

//go:noinline
func middle(a *account, n uint64) uint64 {
	r := a.leaf(n)
	sink = make([]byte, 32)
	return r + 1
}

//go:noinline
func outer(a *account) uint64 {
	var sum uint64
	for i := uint64(0); i < 100; i++ {
		sum += middle(a, i)
	}
	return sum
}

//go:noinline
func worker(done chan uint64) {
	a := &account{}
	var sum uint64
	for {
		sum += outer(a)
		if sum == 1 {
			done <- sum
		}
	}
}

func main() {
	done := make(chan uint64)
	go worker(done)
	worker(done)
	<-done
}
