import NighCore

enum ServiceType {
    /// The name of a service type in Nigh. Where Apple throws an exception, the program stops.
    static func checked(_ type: String) -> String {
        let name = type.lowercased()
        let isValid =
            ServiceName(name) != nil && name.contains { $0.isLetter } && !name.hasPrefix("-")
            && !name.hasSuffix("-")
            && !name.contains("--")
        precondition(
            isValid,
            """
            "\(type)" is not a service type: it has 1 to 15 letters, digits and hyphens, at least one letter, and no hyphen at \
            its beginning, at its end or beside another
            """)
        return name
    }
}
