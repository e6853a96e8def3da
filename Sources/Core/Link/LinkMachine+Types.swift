// What a link takes and gives.

extension LinkMachine {
    package enum Phase: Equatable {
        case preface
        case securing
        case greeting
        case open
        /// Nothing is read or written any more but a last close frame.
        case closed
    }

    /// What the bytes received so far turn out to be, one after another.
    package enum Step {
        /// The other side has proven who it is, its hello has yet to come.
        case secured
        /// The hellos are exchanged; see `peerHello`.
        case opened
        /// A request to converse; `isResume` tells which of the two.
        case request(ConversationRequest, isResume: Bool)
        case accepted(ConversationAcceptance)
        case refused(ConversationRefusal)
        /// A word of two sides that are being paired.
        case pairing(PairingMessage)
        /// The other side's standing is in `peerStanding`.
        case acknowledged
        /// A whole small message on a lane. The bytes are borrowed until the next call.
        case message(Lane, FrameDecoder.Frame)
        /// A large message of this many bytes begins on a lane.
        case begin(Lane, Int)
        /// The next bytes of the message begun on a lane.
        case piece(Lane, FrameDecoder.Frame)
        case unreliable(FrameDecoder.Frame)
        case pong(token: UInt64, roundTrip: Moment.Span)
        /// A peer under suspicion was heard again.
        case heardAgain
        /// The link is over. Write what `gather` still has, then close the pipe.
        case closed(LinkEnd)
    }

    /// Why a link is over, and who said so.
    package struct LinkEnd: Equatable {
        package var cause: NighError.Cause
        var code: LinkClose.Code?
        var saidByPeer: Bool
        /// The code as it was on the wire, where there was one.
        var number: UInt16?

        init(cause: NighError.Cause, code: LinkClose.Code?, saidByPeer: Bool, number: UInt16? = nil) {
            self.cause = cause
            self.code = code
            self.saidByPeer = saidByPeer
            self.number = number ?? code?.rawValue
        }

        /// What is over with the link.
        var scope: LinkClose.Scope { number.map(LinkClose.Scope.init(of:)) ?? .link }
    }

    struct Settings {
        var hello: Hello
        var timings: LinkTimings
        var offer: SecureChannelOffer
        /// Whom the pipe was dialled for, where that is known.
        var expected: PeerID?
        /// From an earlier link with them.
        var ticket: ResumptionTicket?
    }
}
