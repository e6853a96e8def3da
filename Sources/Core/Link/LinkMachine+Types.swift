// The inputs and outputs of a link.

extension LinkMachine {
    package enum Phase: Equatable {
        case preface
        case securing
        case greeting
        case open
        /// Nothing more is read, and nothing more is written except a last close frame.
        case closed
    }

    /// The meaning of the received bytes, one step after another.
    package enum Step {
        /// The other side has proven who it is, but its hello has not come yet.
        case secured
        /// The hellos are exchanged; see `peerHello`.
        case opened
        /// A request for a conversation, or to resume one if `isResume` is true.
        case request(ConversationRequest, isResume: Bool)
        case accepted(ConversationAcceptance)
        case refused(ConversationRefusal)
        /// The context of the other side's own invitation, which it gives up because it accepts this side's.
        case crossed([UInt8])
        /// An introducer's token. The other side's invitation follows.
        case introduced([UInt8])
        /// A pairing message.
        case pairing(PairingMessage)
        /// The other side's standing has arrived; it is in `peerStanding`.
        case acknowledged
        /// A whole small message on a lane. The bytes are valid until the next call.
        case message(Lane, FrameDecoder.Frame)
        /// A whole small message of a kind on a lane. The bytes of the frame begin with the kind.
        case kindMessage(Lane, MessageKind, FrameDecoder.Frame)
        /// The beginning of a large message of this many bytes on a lane, and its kind if it has one.
        case begin(Lane, Int, MessageKind?)
        /// The next bytes of the large message on a lane.
        case piece(Lane, FrameDecoder.Frame)
        case unreliable(FrameDecoder.Frame)
        /// The number and the next bytes of a stream.
        case streamData(FrameDecoder.Frame)
        case streamControl(StreamControlFrame, wireBytes: Int)
        /// The other side has said where it takes datagrams.
        case datagrams(DatagramOffer)
        case pong(token: UInt64, roundTrip: Moment.Span)
        /// Bytes from a suspected peer have arrived.
        case responsiveAgain
        /// The link has ended. Write what `gather` still returns, then close the pipe.
        case closed(LinkEnd)
    }

    /// A ping that has no answer yet.
    struct SentPing {
        let token: UInt64
        let at: Moment
    }

    /// Why a link ended, and which side ended it.
    package struct LinkEnd: Equatable {
        package var cause: NighError.Cause
        var code: LinkClose.Code?
        var isByPeer: Bool
        /// The code as it was on the wire, if there was a code.
        var number: UInt16?

        init(cause: NighError.Cause, code: LinkClose.Code?, isByPeer: Bool, number: UInt16? = nil) {
            self.cause = cause
            self.code = code
            self.isByPeer = isByPeer
            self.number = number ?? code?.rawValue
        }

        /// How much ends together with the link.
        var scope: LinkClose.Scope { number.map(LinkClose.Scope.init(of:)) ?? .link }
    }

    /// The settings of all links of a session over one transport. The links share one object, which saves each of them
    /// the memory and the copies.
    final class Settings {
        let hello: Hello
        let timings: LinkTimings
        let offer: SecureChannelOffer
        /// The time from an open pipe to the end of the hellos.
        let handshake: Moment.Span
        /// The first bytes of each link.
        let preface: ByteSlice
        /// The chunks for control frames, and those for unreliable messages.
        let controlChunks = ControlChunks()
        let unreliableChunks = ControlChunks(chunkSize: 16 << 10)

        init(hello: Hello, timings: LinkTimings, offer: SecureChannelOffer) {
            self.hello = hello
            self.timings = timings
            self.offer = offer
            handshake = Moment.Span(timings.handshake)
            preface = ByteSlice(Preface(security: offer.accepted).bytes)
        }
    }
}
