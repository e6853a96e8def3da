/// How far the messages of one lane have come, counted since the conversation began.
package struct LaneProgress {
    /// Messages that the peer has acknowledged.
    package let acknowledged: UInt64
    /// Messages that were passed whole to any link.
    package let everSent: UInt64
    /// Messages that were received whole.
    package let received: UInt64
}
