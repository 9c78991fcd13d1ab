// SPDX-License-Identifier: Apache-2.0
//! The same questions as tests/bench/symbolize.c, asked of addr2line and blazesym:
//! symbolize-peers addr2line|blazesym names|lines FILE <ADDRESSES; prints one line of figures.
use std::{env, fs, hint::black_box, io::Read};

use addr2line::Loader;
use blazesym::symbolize::{source::{Elf, Source}, Input, Symbolizer};

/// KiB of anonymous memory of this process.
fn memory() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// CPU time of this process in seconds: others may be at work on the host.
fn cpu() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// Reads a name, as who writes it down does.
fn read_name(name: &[u8]) {
    black_box(name.iter().map(|b| *b as usize).sum::<usize>());
}

fn measure(
    what: &str,
    addresses: &[u64],
    begin: f64,
    before: i64,
    mut one: impl FnMut(u64, bool) -> usize,
) {
    let mut found = one(addresses[0], false);
    let open = (cpu() - begin) * 1e3;
    let mut pass = |read| {
        let begin = cpu();
        addresses.iter().for_each(|a| found += one(*a, read));
        (cpu() - begin) * 1e9 / addresses.len() as f64
    };
    let (first, again, read) = (pass(false), pass(false), pass(true));
    println!(
        "{what:<16} {open:8.2} ms {first:7.0} ns {again:7.0} ns {read:7.0} ns {:8} KiB {found:8}",
        memory() - before
    );
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let (peer, lines, file) = (&args[1], args[2] == "lines", &args[3]);
    let what = format!("{peer} {}", args[2]);
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let addresses: Vec<u64> =
        text.lines().map(|l| u64::from_str_radix(l.trim_start_matches("0x"), 16).unwrap()).collect();
    let before = memory();
    let begin = cpu();
    if peer == "addr2line" {
        let loader = Loader::new(file).unwrap();
        measure(&what, &addresses, begin, before, |a, read| {
            let mut n = 0;
            if lines {
                let mut frames = loader.find_frames(a).unwrap();
                while let Some(f) = frames.next().unwrap() {
                    n += 1;
                    if let Some(Ok(name)) = f.function.as_ref().map(|f| f.raw_name()) {
                        if read {
                            read_name(name.as_bytes());
                        }
                        black_box(name.len());
                    }
                    black_box(f.location.and_then(|l| l.line));
                }
            } else if let Some(name) = black_box(loader.find_symbol(a)) {
                n += 1;
                if read {
                    read_name(name.as_bytes());
                }
            }
            n
        });
    } else {
        let symbolizer = Symbolizer::builder()
            .enable_code_info(lines)
            .enable_inlined_fns(lines)
            .enable_demangling(false)
            .build();
        let mut elf = Elf::new(file);
        elf.debug_syms = lines;
        let source = Source::Elf(elf);
        measure(&what, &addresses, begin, before, |a, read| {
            let s = symbolizer.symbolize_single(&source, Input::VirtOffset(a)).unwrap();
            let Some(s) = s.as_sym() else { return 0 };
            if read {
                read_name(s.name.as_bytes());
                s.inlined.iter().for_each(|i| read_name(i.name.as_bytes()));
            }
            1 + s.inlined.len()
        });
    }
}
