# sources of unwind/
