/// A call that waits until the peer has acknowledged all messages before it.
struct Flush {
    let token: CallToken
    /// The number of messages that the peer must have, by lane.
    let counts: [UInt64]
}
