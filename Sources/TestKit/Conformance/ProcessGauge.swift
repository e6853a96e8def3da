import Glibc

/// The resources that this process uses, as Linux counts them.
package enum ProcessGauge {
    /// The number of open descriptors, plus 3 that are always counted. Only differences are meaningful.
    package static var descriptorCount: Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        return count
    }

    /// The number of resident bytes of memory. Always 0 under a sanitizer: it keeps freed memory or data of its own, so
    /// the number would mean nothing.
    package static var residentBytes: Int {
        guard !isSanitized else { return 0 }
        let descriptor = open("/proc/self/statm", O_RDONLY)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &text, text.count)
        let fields = String(decoding: text.prefix(max(count, 0)), as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
    }

    private static let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}
