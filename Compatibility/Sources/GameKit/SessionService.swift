import NighLoop

extension ServiceName {
    /// The service under which the sessions of one session ID find each other: the ID itself if it can be the name of a
    /// service, otherwise a name made from its hash.
    init(sessionID: String) {
        self = ServiceName(sessionID) ?? ServiceName(hashing: sessionID)
    }

    private init(hashing text: String) {
        // FNV-1a. Nobody gains anything from two IDs with one hash, so it need not be cryptographic.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        // 12 digits of 5 bits, after three letters: as long as a name of a service may be.
        let digits = Array("abcdefghijklmnopqrstuvwxyz234567")
        let name = (0..<12).map { digits[Int(hash >> (UInt64($0) * 5) & 31)] }
        self.init(stringLiteral: "gk-" + String(name))
    }
}
