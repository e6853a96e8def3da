import Glibc

/// The headers of a shared library's file, read and compared before the loader relies on them.
///
/// The loader maps the parts that the headers name and follows their pointers. If a file is cut off, or its headers are
/// damaged, that ends the process. So all that the loader follows must lie within the file, and what is stated twice,
/// for the loader and for linkers, must agree. The code, relocations and symbols are not checked.
struct LibraryHeaders {
    /// Why a file is not loaded, in words.
    struct Flaw: Error {
        let message: String

        init(_ message: String) { self.message = message }
    }

    /// The most segments that are read: more than any library has, so that a wrong number does little harm.
    private static let segmentLimit = 128
    private static let sectionLimit = 65_536
    private static let entryLimit = 65_536

    /// The end of the addresses that a process can have.
    private static let endOfMemory: UInt64 = 1 << 48

    let segments: [Elf64_Phdr]
    let sections: [Elf64_Shdr]
    let dynamic: [Elf64_Dyn]
    /// How many relocations at the front need no symbol. The loader relies on the number that the file states.
    private let relativeCount: UInt64
    private let fileSize: UInt64

    /// Reads the headers of the library that is open at `descriptor`. Fails if one of them does not lie within the
    /// file.
    init(_ header: Elf64_Ehdr, of descriptor: Int32) throws(Flaw) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Flaw(String(cString: strerror(errno))) }
        fileSize = UInt64(status.st_size)
        guard header.e_ident.4 == UInt8(ELFCLASS64), header.e_ident.5 == UInt8(ELFDATA2LSB),
            header.e_version == UInt32(EV_CURRENT), header.e_phentsize == MemoryLayout<Elf64_Phdr>.size,
            header.e_phnum > 0, header.e_phnum <= Self.segmentLimit
        else { throw Flaw("its header is damaged") }
        segments = try Self.read(
            descriptor, fileSize, "its program headers", at: header.e_phoff, count: Int(header.e_phnum))
        if header.e_shnum == 0 {
            sections = []
        } else {
            guard header.e_shentsize == MemoryLayout<Elf64_Shdr>.size, header.e_shnum <= Self.sectionLimit
            else { throw Flaw("its header is damaged") }
            sections = try Self.read(
                descriptor, fileSize, "its section headers", at: header.e_shoff, count: Int(header.e_shnum))
        }
        let parts = segments.filter { $0.p_type == UInt32(PT_DYNAMIC) }
        guard parts.count == 1, let part = parts.first,
            part.p_filesz % UInt64(MemoryLayout<Elf64_Dyn>.size) == 0,
            part.p_filesz / UInt64(MemoryLayout<Elf64_Dyn>.size) <= Self.entryLimit
        else { throw Flaw("it has no dynamic section that could be read") }
        let all: [Elf64_Dyn] = try Self.read(
            descriptor, fileSize, "its dynamic section", at: part.p_offset,
            count: Int(part.p_filesz) / MemoryLayout<Elf64_Dyn>.size)
        guard let end = all.firstIndex(where: { $0.d_tag == Int64(DT_NULL) }) else {
            throw Flaw("its dynamic section has no end")
        }
        dynamic = Array(all[..<end])
        relativeCount = Self.relativeCount(descriptor, fileSize, dynamic, segments)
    }

    private static func relativeCount(
        _ descriptor: Int32, _ fileSize: UInt64, _ dynamic: [Elf64_Dyn], _ segments: [Elf64_Phdr]
    ) -> UInt64 {
        func value(_ tag: Int32) -> UInt64? { dynamic.last { $0.d_tag == Int64(tag) }?.d_un.d_val }
        guard let address = value(DT_RELA), let size = value(DT_RELASZ), size <= fileSize,
            let load = segments.first(where: {
                $0.p_type == UInt32(PT_LOAD) && address >= $0.p_vaddr && address - $0.p_vaddr < $0.p_filesz
            }),
            let table: [Elf64_Rela] = try? read(
                descriptor, fileSize, "its relocations", at: load.p_offset &+ (address - load.p_vaddr),
                count: Int(size) / MemoryLayout<Elf64_Rela>.size)
        else { return 0 }
        #if arch(x86_64)
            let relative = UInt64(R_X86_64_RELATIVE)
        #elseif arch(arm64)
            let relative = UInt64(R_AARCH64_RELATIVE)
        #endif
        return UInt64(table.prefix { $0.r_info & 0xffff_ffff == relative }.count)
    }

    /// Reads `count` entries at `offset`. Only for the plain structures of the C header.
    private static func read<Entry>(
        _ descriptor: Int32, _ fileSize: UInt64, _ what: String, at offset: UInt64, count: Int
    ) throws(Flaw) -> [Entry] {
        let byteCount = count * MemoryLayout<Entry>.stride
        guard let end = end(offset, UInt64(byteCount)), end <= fileSize else {
            throw Flaw("\(what) lie beyond its end: the file is cut off or damaged")
        }
        var isWhole = true
        let entries = [Entry](unsafeUninitializedCapacity: count) { buffer, initialised in
            isWhole = pread(descriptor, buffer.baseAddress, byteCount, off_t(offset)) == byteCount
            initialised = isWhole ? count : 0
        }
        guard isWhole else { throw Flaw("\(what) cannot be read") }
        return entries
    }

    /// Returns the end of a range; nil if it overflows.
    private static func end(_ start: UInt64, _ count: UInt64) -> UInt64? {
        let (end, overflow) = start.addingReportingOverflow(count)
        return overflow ? nil : end
    }

    // MARK: The checks

    /// Fails if the loader would follow something that leads nowhere.
    func check() throws(Flaw) {
        try checkLoads()
        for segment in segments where segment.p_type != UInt32(PT_LOAD) { try check(segment) }
        try checkSections()
        try checkDynamic()
    }

    private var loads: [Elf64_Phdr] { segments.filter { $0.p_type == UInt32(PT_LOAD) } }

    private func checkLoads() throws(Flaw) {
        let page = UInt64(getpagesize())
        var (endInFile, endInMemory) = (UInt64(0), UInt64(0))
        guard !loads.isEmpty else { throw Flaw("it has nothing to load") }
        for load in loads {
            guard let fileEnd = Self.end(load.p_offset, load.p_filesz),
                let memoryEnd = Self.end(load.p_vaddr, load.p_memsz)
            else { throw Flaw("its program headers are damaged") }
            guard fileEnd <= fileSize else {
                throw Flaw(
                    "it has \(fileSize) bytes, and would need \(fileEnd): the file is cut off or damaged")
            }
            guard load.p_filesz <= load.p_memsz, load.p_align >= page, load.p_align.nonzeroBitCount == 1,
                load.p_vaddr % load.p_align == load.p_offset % load.p_align, load.p_offset >= endInFile,
                load.p_vaddr >= endInMemory, memoryEnd <= Self.endOfMemory, load.p_flags & UInt32(PF_R) != 0
            else { throw Flaw("its program headers are damaged") }
            (endInFile, endInMemory) = (fileEnd, memoryEnd)
        }
    }

    /// Checks a segment that the loader reads in the memory that another segment has mapped.
    private func check(_ segment: Elf64_Phdr) throws(Flaw) {
        switch Int32(bitPattern: segment.p_type) {
        case PT_DYNAMIC, PT_GNU_RELRO:
            // The loader writes there, or makes it read-only.
            guard isMapped(segment, UInt32(PF_W)) else { throw Flaw("its program headers are damaged") }
        case PT_TLS, PT_NOTE, PT_PHDR, PT_GNU_EH_FRAME, Self.property:
            let isAligned = segment.p_align == 0 || segment.p_align.nonzeroBitCount == 1
            guard isAligned, isMapped(segment, UInt32(PF_R)) else {
                throw Flaw("its program headers are damaged")
            }
        default: break
        }
    }

    /// `PT_GNU_PROPERTY`, which older headers lack.
    private static let property: Int32 = 0x6474_e553

    private func isMapped(_ segment: Elf64_Phdr, _ flags: UInt32) -> Bool {
        // Only the bytes in the file belong to a loaded segment. Each thread gets room for the rest.
        let count =
            segment.p_type == UInt32(PT_TLS) ? segment.p_filesz : max(segment.p_filesz, segment.p_memsz)
        guard segment.p_filesz <= segment.p_memsz, let load = load(of: segment.p_vaddr, count) else {
            return false
        }
        return load.p_flags & flags == flags
            && (segment.p_filesz == 0
                || segment.p_offset &- load.p_offset == segment.p_vaddr &- load.p_vaddr)
    }

    /// Returns the loaded segment that contains the range of memory. The rest of the segment's last page counts as
    /// well.
    private func load(of address: UInt64, _ count: UInt64) -> Elf64_Phdr? {
        guard let end = Self.end(address, count) else { return nil }
        let page = UInt64(getpagesize())
        return loads.first { load in
            let last = load.p_vaddr + load.p_memsz
            return address >= load.p_vaddr && end <= last + (page - last % page) % page
        }
    }

    // MARK: Sections

    private static func isLoaded(_ section: Elf64_Shdr) -> Bool { section.sh_flags & UInt64(SHF_ALLOC) != 0 }

    private static func isPerThread(_ section: Elf64_Shdr) -> Bool { section.sh_flags & UInt64(SHF_TLS) != 0 }

    private static func isNoBits(_ section: Elf64_Shdr) -> Bool { section.sh_type == UInt32(SHT_NOBITS) }

    /// Checks the sections against the segments. The section headers state once more where everything lies, and the
    /// loader does not read them. So if a program header is damaged, the two differ.
    private func checkSections() throws(Flaw) {
        for section in sections where Self.isLoaded(section) && section.sh_size > 0 {
            let isPerThread = Self.isPerThread(section)
            if isPerThread, Self.isNoBits(section) { continue }
            guard let load = load(of: section.sh_addr, section.sh_size),
                section.sh_flags & UInt64(SHF_WRITE) == 0 || load.p_flags & UInt32(PF_W) != 0,
                section.sh_flags & UInt64(SHF_EXECINSTR) == 0 || load.p_flags & UInt32(PF_X) != 0
            else { throw Self.disagreement }
            guard !Self.isNoBits(section) else { continue }
            guard section.sh_offset &- load.p_offset == section.sh_addr &- load.p_vaddr,
                section.sh_offset + section.sh_size <= load.p_offset + load.p_filesz
            else { throw Self.disagreement }
        }
        for section in sections where !Self.isNoBits(section) && section.sh_type != UInt32(SHT_NULL) {
            guard let end = Self.end(section.sh_offset, section.sh_size), end <= fileSize else {
                throw Flaw("one of its sections lies beyond its end: the file is cut off or damaged")
            }
        }
        try checkPerThread()
        try checkReadOnly()
    }

    private static let disagreement = Flaw("its headers contradict each other: the file is damaged")

    /// Checks that one segment describes the thread-local data, from the first such section to the end of the last.
    private func checkPerThread() throws(Flaw) {
        let own = sections.filter { Self.isLoaded($0) && Self.isPerThread($0) }
        guard let first = own.min(by: { $0.sh_addr < $1.sh_addr }) else { return }
        let last = own.reduce(first.sh_addr) { max($0, $1.sh_addr &+ $1.sh_size) }
        let alignment = own.reduce(1) { max($0, $1.sh_addralign) }
        guard let segment = segments.first(where: { $0.p_type == UInt32(PT_TLS) }),
            segment.p_vaddr == first.sh_addr, last <= segment.p_vaddr &+ segment.p_memsz,
            segment.p_vaddr &+ segment.p_memsz <= last &+ alignment, segment.p_align >= alignment,
            segment.p_align <= max(alignment, 64)
        else { throw Self.disagreement }
    }

    /// Checks that the part to become read-only after loading ends where a section ends. The first three entries of the
    /// table that is filled in as functions are called belong to it.
    private func checkReadOnly() throws(Flaw) {
        let page = UInt64(getpagesize())
        for part in segments where part.p_type == UInt32(PT_GNU_RELRO) {
            let end = (part.p_vaddr + part.p_memsz) / page * page
            let isCut = sections.contains {
                Self.isLoaded($0) && !Self.isPerThread($0) && $0.sh_addr >= part.p_vaddr
                    && $0.sh_addr &+ 3 * 8 < end && $0.sh_addr &+ $0.sh_size > end
            }
            guard !isCut else { throw Self.disagreement }
        }
    }

    // MARK: The dynamic section

    /// A table that two entries of the dynamic section describe, and the kind of section that it is.
    private struct Table {
        let start: Int32
        let size: Int32
        let entry: UInt64
        let kind: Int32?
    }

    private static let tables = [
        Table(start: DT_STRTAB, size: DT_STRSZ, entry: 1, kind: SHT_STRTAB),
        Table(start: DT_RELA, size: DT_RELASZ, entry: 24, kind: SHT_RELA),
        Table(start: DT_JMPREL, size: DT_PLTRELSZ, entry: 24, kind: nil),
        Table(start: relr, size: relrSize, entry: 8, kind: relrSection),
        Table(start: DT_INIT_ARRAY, size: DT_INIT_ARRAYSZ, entry: 8, kind: SHT_INIT_ARRAY),
        Table(start: DT_FINI_ARRAY, size: DT_FINI_ARRAYSZ, entry: 8, kind: SHT_FINI_ARRAY),
    ]

    /// `DT_RELR`, `DT_RELRSZ` and `SHT_RELR`, which older headers lack.
    private static let relr: Int32 = 36
    private static let relrSize: Int32 = 35
    private static let relrSection: Int32 = 19

    /// Tables whose size is not stated, and the kinds of section that they are.
    private static let pointers: [(Int32, Int32)] = [
        (DT_SYMTAB, SHT_DYNSYM), (DT_HASH, SHT_HASH), (DT_GNU_HASH, SHT_GNU_HASH),
        (DT_VERSYM, SHT_GNU_versym), (DT_VERNEED, SHT_GNU_verneed), (DT_VERDEF, SHT_GNU_verdef),
    ]

    private func value(_ tag: Int32) -> UInt64? {
        dynamic.last { $0.d_tag == Int64(tag) }?.d_un.d_val
    }

    private func checkDynamic() throws(Flaw) {
        let damage = Flaw("its dynamic section is damaged")
        guard value(DT_SYMTAB) != nil, let stringSize = value(DT_STRSZ), value(DT_STRTAB) != nil,
            value(DT_HASH) != nil || value(DT_GNU_HASH) != nil, value(DT_SYMENT) == 24,
            value(DT_RELA) == nil || value(DT_RELAENT) == 24,
            value(DT_JMPREL) == nil || value(DT_PLTREL) == UInt64(DT_RELA), value(DT_REL) == nil
        else { throw damage }
        for name in [DT_SONAME, DT_RPATH, DT_RUNPATH] where value(name).map({ $0 < stringSize }) == false {
            throw damage
        }
        for entry in dynamic where entry.d_tag == Int64(DT_NEEDED) && entry.d_un.d_val >= stringSize {
            throw damage
        }
        for code in [DT_INIT, DT_FINI] {
            guard let address = value(code) else { continue }
            guard let load = load(of: address, 1), load.p_flags & UInt32(PF_X) != 0,
                sections.isEmpty || sections.contains(where: { Self.isLoaded($0) && $0.sh_addr == address })
            else { throw damage }
        }
        if let count = value(DT_RELACOUNT), count > relativeCount { throw damage }
        if let table = value(DT_PLTGOT), load(of: table, 8) == nil { throw damage }
        for table in Self.tables { try check(table, else: damage) }
        for (tag, kind) in Self.pointers { try check(tag, kind, else: damage) }
        try checkDynamicSegment(else: damage)
    }

    private func check(_ table: Table, else damage: Flaw) throws(Flaw) {
        guard let address = value(table.start) else {
            guard value(table.size) ?? 0 == 0 else { throw damage }
            if table.kind == SHT_RELA || table.kind == SHT_STRTAB { return }
            guard let kind = table.kind, hasLoaded(kind) else { return }
            throw damage
        }
        guard let size = value(table.size), size % table.entry == 0, load(of: address, size) != nil else {
            throw damage
        }
        guard !sections.isEmpty, size > 0 else { return }
        let starts = sections.contains { Self.isLoaded($0) && $0.sh_addr == address }
        let ends = sections.contains { Self.isLoaded($0) && $0.sh_addr &+ $0.sh_size == address &+ size }
        guard starts && ends else { throw damage }
    }

    private func check(_ tag: Int32, _ kind: Int32, else damage: Flaw) throws(Flaw) {
        guard let address = value(tag) else {
            // The table may be missing if the file has no such section: one of the two kinds of hash table is enough.
            if hasLoaded(kind) { throw damage }
            return
        }
        guard load(of: address, 16) != nil else { throw damage }
        guard !sections.isEmpty else { return }
        guard sections.contains(where: { $0.sh_type == UInt32(bitPattern: kind) && $0.sh_addr == address })
        else { throw damage }
    }

    private func hasLoaded(_ kind: Int32) -> Bool {
        sections.contains { $0.sh_type == UInt32(bitPattern: kind) && Self.isLoaded($0) && $0.sh_size > 0 }
    }

    /// Checks that the dynamic segment is the section of that kind, and that the loader is given each table of
    /// relocations.
    private func checkDynamicSegment(else damage: Flaw) throws(Flaw) {
        guard !sections.isEmpty else { return }
        guard let part = segments.first(where: { $0.p_type == UInt32(PT_DYNAMIC) }),
            sections.contains(where: {
                $0.sh_type == UInt32(SHT_DYNAMIC) && $0.sh_addr == part.p_vaddr && $0.sh_size == part.p_memsz
            })
        else { throw damage }
        let declared = [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)].compactMap { start, size in
            value(start).map { $0..<($0 &+ max(value(size) ?? 0, 1)) }
        }
        for section in sections
        where section.sh_type == UInt32(SHT_RELA) && Self.isLoaded(section) && section.sh_size > 0 {
            guard declared.contains(where: { $0.contains(section.sh_addr) }) else { throw damage }
        }
    }
}
