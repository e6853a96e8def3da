/// The names that peers give to resources. Programs make paths of them.
enum ResourceName {
    /// Returns a name that leads out of no folder that it is appended to: `..` and slashes in front are left out of it,
    /// and zero bytes, at which a path would end. Any other name stays as it is.
    static func harmless(_ name: String) -> String {
        // Bytes, as the system reads paths: a letter that combines with a slash makes another character of it.
        let parts = name.utf8.filter { $0 != 0 }.split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let inside = parts.filter { !$0.elementsEqual("..".utf8) }
            .drop { $0.isEmpty || $0.elementsEqual(".".utf8) }
        // Such a name would be the folder itself, which programs replace by the file.
        guard !inside.isEmpty else { return "resource" }
        return String(decoding: Array(inside.joined(separator: "/".utf8)), as: UTF8.self)
    }
}
