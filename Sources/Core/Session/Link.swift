/// A pipe and what the session knows of who is on it. Internal to the session machine and its driver; loop only.
final class Link {
    /// What the link is for, once its hellos are exchanged.
    enum Purpose {
        /// Not known yet: waits for the hellos, then for a request.
        case unsettled
        /// Carries this session's own request, which waits for its answer.
        case asking
        /// Brought an invitation that waits for the program's answer.
        case invited
        /// Carries the conversation.
        case carrying
        /// Carries nothing but a pairing.
        case pairing
        /// Over; what is still to be written is only a goodbye.
        case finished
    }

    let number: UInt64
    let machine: LinkMachine
    let transport: Int
    let dial: DialID?
    let openedAt: Moment
    private(set) var peer: PeerRecord?
    var purpose = Purpose.unsettled
    /// The conversation it carries, and from when on.
    var conversation: Conversation?
    var carriesSince = Moment.never
    /// Whether what comes is left where it is until another link's answer: this one carries the conversation, and that
    /// one may take over.
    var isHeld = false
    /// Whether it took over from a link on a worse transport.
    var isBetter = false
    /// Whether it is among the links that have something to write.
    var isDirty = false
    /// The earliest moment at which the session machine will look at this link by itself.
    var wakesAt = Moment.never

    init(number: UInt64, machine: LinkMachine, transport: Int, dial: DialID?, now: Moment) {
        self.number = number
        self.machine = machine
        self.transport = transport
        self.dial = dial
        openedAt = now
    }

    /// The hello has said who is there.
    func belongs(to peer: PeerRecord) {
        guard self.peer == nil else { return }
        self.peer = peer
        peer.linkCount += 1
    }
}
