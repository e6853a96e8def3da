/// The last frame of a link: why it ends.
package struct LinkClose: Hashable {
    package enum Code: UInt16, CaseIterable {
        /// The conversation is over; everything has arrived.
        case left = 0
        case protocolViolation = 1
        case superseded = 2
        case selfDial = 3
        case sameIdentity = 4
        case cancelled = 5
        case silent = 6
        case noCommonVersion = 7
        case noCommonSecurity = 8
        case wrongService = 9
        case wrongPeer = 10
        case restarted = 11
        case tooManyLinks = 12
        case tooSlow = 13
        case sessionClosed = 14
        /// What stays for codes of later versions.
        case other = 15
        case notPaired = 16
        case claimsAnotherPeer = 17
        case prefaceChanged = 18
    }

    /// What is over when a link ends. Each includes the one before it.
    package enum Scope: UInt8 {
        /// The link alone: a conversation on it looks for another link, a request on it for another route.
        case link = 1
        /// Also the request on the link, and a conversation that the link carries.
        case request = 2
        /// Also a conversation that was to be resumed on the link.
        case conversation = 3
    }

    package var code: Code
    package var words: String = ""
    /// The code as it is on the wire: of a later version, it is more than `code` tells.
    package private(set) var number: UInt16

    var payload: [UInt8] {
        var writer = FieldWriter()
        writer.write(number)
        writer.write(short: words)
        return writer.bytes
    }

    init(_ code: Code, _ words: String = "") {
        self.code = code
        self.words = words
        number = code.rawValue
    }

    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        number = try reader.number(UInt16.self, "a close code")
        code = Code(rawValue: number) ?? .other
        words = try reader.words("a close's words")
        try reader.finish("a close")
    }
}

extension LinkClose.Scope {
    /// What a close with this code ends; docs/PROTOCOL.md, section 6. Codes from 0x0100 on say so themselves, in their higher
    /// byte, so that it is known of those of later versions, too.
    package init(of number: UInt16) {
        switch LinkClose.Code(rawValue: number) {
        case .left, .protocolViolation, .restarted, .notPaired: self = .conversation
        case .cancelled, .noCommonVersion, .noCommonSecurity, .wrongService, .sessionClosed:
            self = .request
        case .superseded, .selfDial, .sameIdentity, .silent, .wrongPeer, .tooManyLinks, .tooSlow, .other,
            .claimsAnotherPeer, .prefaceChanged:
            self = .link
        case nil: self = LinkClose.Scope(rawValue: UInt8(number >> 8)) ?? .link
        }
    }
}
