// SPDX-License-Identifier: Apache-2.0
//! framehop for the benchmark: files are mapped once, each process has an unwinder of its own with
//! a module for each executable mapping, and one cache serves all of them, as samply does it.
//! The C side (../framehop.h) owns what it is given and frees processes before files.

use std::os::raw::{c_int, c_void};
use std::slice;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, Unwinder};
use object::{CompressionFormat, Object, ObjectSection};

type Data = &'static [u8];

pub struct File {
    map: *mut c_void,
    size: usize,
    sections: ExplicitModuleSectionInfo<Data>,
}

pub struct Process {
    unwinder: UnwinderX86_64<Data, MayAllocateDuringUnwind>,
}

pub struct Cache {
    cache: CacheX86_64<MayAllocateDuringUnwind>,
}

fn parse(bytes: Data) -> Option<ExplicitModuleSectionInfo<Data>> {
    let file = object::File::parse(bytes).ok()?;
    let range = |name: &str| {
        let s = file.section_by_name(name)?;
        Some(s.address()..s.address() + s.size())
    };
    // Compressed ones are nothing framehop could read.
    let data = |name: &str| {
        let s = file.section_by_name(name)?;
        let stored = s.compressed_file_range().ok()?.format == CompressionFormat::None;
        stored.then(|| s.data().ok())?
    };
    Some(ExplicitModuleSectionInfo {
        text_svma: range(".text"),
        text: data(".text"),
        stubs_svma: range(".plt"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        debug_frame: data(".debug_frame"),
        ..Default::default()
    })
}

fn new_file(map: *mut c_void, start: *const u8, size: usize) -> *mut File {
    let bytes: Data = unsafe { slice::from_raw_parts(start, size) };
    match parse(bytes) {
        Some(sections) => Box::into_raw(Box::new(File { map, size, sections })),
        None => std::ptr::null_mut(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn framehop_file_new(fd: c_int) -> *mut File {
    let mut st: libc::stat = std::mem::zeroed();

    if libc::fstat(fd, &mut st) < 0 || st.st_size <= 0 {
        return std::ptr::null_mut();
    }
    let size = st.st_size as usize;
    let map = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0);
    if map == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    let file = new_file(map, map as *const u8, size);
    if file.is_null() {
        libc::munmap(map, size);
    }
    file
}

#[no_mangle]
pub unsafe extern "C" fn framehop_file_new_memory(image: *const u8, size: usize) -> *mut File {
    new_file(std::ptr::null_mut(), image, size)
}

#[no_mangle]
pub unsafe extern "C" fn framehop_file_free(file: *mut File) {
    if file.is_null() {
        return;
    }
    let file = Box::from_raw(file);
    if !file.map.is_null() {
        libc::munmap(file.map, file.size);
    }
}

#[no_mangle]
pub extern "C" fn framehop_process_new() -> *mut Process {
    Box::into_raw(Box::new(Process { unwinder: UnwinderX86_64::new() }))
}

#[no_mangle]
pub unsafe extern "C" fn framehop_process_free(p: *mut Process) {
    if !p.is_null() {
        drop(Box::from_raw(p));
    }
}

#[no_mangle]
pub unsafe extern "C" fn framehop_process_add(
    p: *mut Process,
    file: *const File,
    start: u64,
    end: u64,
    bias: u64,
) {
    let s = &(*file).sections;
    let sections = ExplicitModuleSectionInfo {
        text_svma: s.text_svma.clone(),
        text: s.text,
        stubs_svma: s.stubs_svma.clone(),
        got_svma: s.got_svma.clone(),
        eh_frame_svma: s.eh_frame_svma.clone(),
        eh_frame: s.eh_frame,
        eh_frame_hdr_svma: s.eh_frame_hdr_svma.clone(),
        eh_frame_hdr: s.eh_frame_hdr,
        debug_frame: s.debug_frame,
        ..Default::default()
    };
    (*p).unwinder.add_module(Module::new(String::new(), start..end, bias, sections));
}

#[no_mangle]
pub extern "C" fn framehop_cache_new() -> *mut Cache {
    Box::into_raw(Box::new(Cache { cache: CacheX86_64::new() }))
}

#[no_mangle]
pub unsafe extern "C" fn framehop_cache_free(cache: *mut Cache) {
    if !cache.is_null() {
        drop(Box::from_raw(cache));
    }
}

/// Addresses as perfwalk has them: the pc, then return addresses less one. How many.
#[no_mangle]
pub unsafe extern "C" fn framehop_walk(
    p: *const Process,
    cache: *mut Cache,
    pc: u64,
    sp: u64,
    fp: u64,
    stack: *const u8,
    n_stack: usize,
    addresses: *mut u64,
    max: usize,
) -> usize {
    let words = slice::from_raw_parts(stack, n_stack);
    let out = slice::from_raw_parts_mut(addresses, max);
    let mut read = |addr: u64| {
        let at = addr.wrapping_sub(sp) as usize;
        match words.get(at..).and_then(|w| w.first_chunk::<8>()) {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            None => Err(()),
        }
    };
    let regs = UnwindRegsX86_64::new(pc, sp, fp);
    let mut frames = (*p).unwinder.iter_frames(pc, regs, &mut (*cache).cache, &mut read);
    let mut n = 0;

    while n < max {
        match frames.next() {
            Ok(Some(FrameAddress::InstructionPointer(address))) => out[n] = address,
            Ok(Some(FrameAddress::ReturnAddress(address))) => out[n] = address.get() - 1,
            _ => break,
        }
        n += 1;
    }
    n
}

/// Hits and misses of the cache, its misses by cause added up.
#[no_mangle]
pub unsafe extern "C" fn framehop_cache_stats(cache: *const Cache, hits: *mut u64, misses: *mut u64) {
    let s = (*cache).cache.stats();

    *hits = s.hits();
    *misses = s.misses();
}
