import Glibc

/// The programs of this package, as they were built with the tests.
package enum BuiltPrograms {
    /// Where the tests' own program lies, and all others beside it.
    private static let folder: String = {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let path = String(decoding: buffer.prefix(max(count, 0)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return path.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
    }()

    /// Where the program of that name is.
    package static func path(of name: String) -> String { "\(folder)/\(name)" }
}
