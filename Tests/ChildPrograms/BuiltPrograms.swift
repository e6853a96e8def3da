import Glibc

/// The programs of this package that were built together with the tests.
package enum BuiltPrograms {
    /// The folder of the tests' own program, in which all other programs lie too.
    package static let folder: String = {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let path = String(decoding: buffer.prefix(max(count, 0)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return path.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
    }()

    /// Returns the path of the program `name`.
    package static func path(of name: String) -> String { "\(folder)/\(name)" }
}
