import Arguments
import NighLoop

extension TransportAddress {
    /// Reads an address as people type it: with its scheme, as a spec, or as a host and a port, which mean TCP.
    ///
    /// Returns nil for text that may be a name. Throws for text that can only be meant as an address, but is not one.
    public static func typed(_ text: String) throws(UsageError) -> TransportAddress? {
        if let address = TransportAddress(text) { return address }
        guard !text.contains(":/") else { throw noAddress(text) }
        if let host = host(before: text), isHost(host) { return TransportAddress(scheme: "tcp", value: text) }
        let numbers = text.prefix { $0 != ":" }
        if isDotted(numbers) {
            throw UsageError(
                "\"\(text)\" is not an address: it needs a port from 1 to 65535, as in tcp://\(numbers):4000")
        }
        guard !isColons(text) else {
            throw UsageError(
                "\"\(text)\" is not an address: write tcp://[fe80::1]:4000 for IPv6, or bluetooth://00:11:22:33:44:55"
            )
        }
        return nil
    }

    /// The error for text that is not an address.
    public static func noAddress(_ text: String) -> UsageError {
        UsageError("\"\(text)\" is not an address such as tcp://192.168.1.7:4000")
    }

    /// Returns the address that a text such as `lynx:4000` would be with a scheme; nil if it does not end with a port.
    public static func withScheme(_ text: String) -> TransportAddress? {
        host(before: text) == nil || text.contains(" ") ? nil : TransportAddress(scheme: "tcp", value: text)
    }

    /// Returns the text before the port at the end of `text`; nil if there is no port.
    private static func host(before text: String) -> Substring? {
        guard let colon = text.lastIndex(of: ":"), colon > text.startIndex else { return nil }
        let digits = text[text.index(after: colon)...]
        guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(digits), port > 0
        else { return nil }
        return text[..<colon]
    }

    /// Returns whether this is certainly a host: a name with a dot, `localhost`, or an address of four numbers or in
    /// brackets.
    private static func isHost(_ text: Substring) -> Bool {
        if text.hasPrefix("["), text.hasSuffix("]") { return isColons(String(text.dropFirst().dropLast())) }
        let isName = text.utf8.allSatisfy { byte in
            let letter = byte | 0x20
            return (0x61...0x7A).contains(letter) || (0x30...0x39).contains(byte)
                || [0x2D, 0x2E].contains(byte)
        }
        return isName && (text == "localhost" || text.contains(".") && text.first != "." && text.last != ".")
    }

    /// Returns whether this is four numbers with dots between them.
    private static func isDotted(_ text: Substring) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Returns whether this looks like an address of IPv6 or Bluetooth: hexadecimal digits with at least two colons.
    private static func isColons(_ text: String) -> Bool {
        let address = text.prefix { $0 != "%" }
        return address.utf8.count { $0 == 0x3A } >= 2
            && address.allSatisfy { $0.isHexDigit || ":.".contains($0) }
    }
}
