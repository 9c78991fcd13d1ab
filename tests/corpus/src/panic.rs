// SPDX-License-Identifier: Apache-2.0
// A Rust panic, from panic!() to catch_unwind().
use std::arch::asm;
use std::panic;

struct Guard(u64);
impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        std::hint::black_box(self.0);
    }
}

#[inline(never)]
fn deep(n: u64) -> u64 {
    let guard = Guard(n);
    if n == 0 {
        panic!("in flight {}", guard.0);
    }
    deep(n - 1) + std::hint::black_box(guard.0)
}

fn once() {
    let r = panic::catch_unwind(|| deep(std::hint::black_box(3)));
    std::hint::black_box(r.is_err());
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    once();
    unsafe { asm!("int3") };
    once();
    unsafe { asm!("int3") };
}
