// SPDX-License-Identifier: Apache-2.0
//! Trait objects and generics on the main thread and on a second one; a panic caught now and then.
use std::arch::asm;
use std::panic::{catch_unwind, set_hook};

/// A value the compiler knows nothing about.
#[inline(always)]
fn unknown(mut x: u64) -> u64 {
    unsafe { asm!("/* {0} */", inout(reg) x, options(nomem, nostack)) };
    x
}

trait Shape {
    fn area(&self, n: u64) -> u64;
}
struct Square(u64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, n: u64) -> u64 {
        let mut x = n;
        for i in 0..20000u64 {
            x = unknown(x ^ (i * self.0));
        }
        x
    }
}

#[inline(never)]
fn rusty_generic<T: Shape + ?Sized>(shape: &T, n: u64) -> u64 {
    unknown(shape.area(n)) + 1
}

#[inline(never)]
fn rusty_sum(shapes: &[Box<dyn Shape>]) -> u64 {
    let mut sum = 0;
    for s in shapes {
        sum += unknown(rusty_generic(s.as_ref(), sum));
    }
    sum
}

#[inline(never)]
fn rusty_panics(n: u64) -> u64 {
    if unknown(n) % 2 == 0 {
        panic!("even");
    }
    n
}

#[inline(never)]
fn rusty_loop() -> u64 {
    let shapes: Vec<Box<dyn Shape>> = (1..9).map(|i| Box::new(Square(i)) as Box<dyn Shape>).collect();
    let mut sum = 0u64;
    loop {
        for _ in 0..10 {
            sum = sum.wrapping_add(unknown(rusty_sum(&shapes)));
        }
        if catch_unwind(|| rusty_panics(2)).is_err() {
            sum = sum.wrapping_add(1);
        }
        if unknown(sum) == 1 {
            return sum;
        }
    }
}

fn main() {
    set_hook(Box::new(|_| {}));
    let other = std::thread::spawn(|| unknown(rusty_loop()));
    unknown(rusty_loop());
    other.join().unwrap();
}
