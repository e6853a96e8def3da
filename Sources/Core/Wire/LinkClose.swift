/// The last frame of a link, which says why the link ends.
package struct LinkClose: Hashable {
    package enum Code: UInt16, CaseIterable {
        /// The sender ended the conversation: everything is acknowledged, or it has stopped waiting for that.
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
        /// No other code fits; also stands for unknown codes of later versions.
        case other = 15
        case notPaired = 16
        case claimsAnotherPeer = 17
        case prefaceChanged = 18
    }

    /// How much ends together with a link. Each scope includes the ones before it.
    package enum Scope: UInt8 {
        /// Only the link. A conversation on it looks for another link, and a request on it tries another route.
        case link = 1
        /// Also the request on the link, and a conversation that the link carries.
        case request = 2
        /// Also a conversation that the request on the link was to resume.
        case conversation = 3
    }

    package var code: Code
    package var reason: String = ""
    /// The code as a number, as on the wire. For an unknown code of a later version, `code` is `other`.
    package private(set) var number: UInt16

    init(_ code: Code, _ reason: String = "") {
        self.code = code
        self.reason = reason
        number = code.rawValue
    }

    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        number = try reader.number(UInt16.self, "a close code")
        code = Code(rawValue: number) ?? .other
        reason = try reader.displayText("a close's words")
        try reader.finish("a close")
    }
}

extension LinkClose: FramePayload {
    package var payloadLength: Int { 2 + PayloadWriter.length(ofShort: reason) }

    package func write(to writer: inout PayloadWriter) {
        writer.write(number)
        writer.write(short: reason)
    }
}

extension LinkClose.Scope {
    /// Determines the scope of a close frame with this code; see docs/reference/PROTOCOL.md, section 6. The higher byte
    /// of a code from 0x0100 on states its scope, so that the scope is known even for codes of later versions.
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
