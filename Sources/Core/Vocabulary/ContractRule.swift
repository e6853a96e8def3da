/// The rules of the contract of ``Transport`` and ``Pipe`` that can be seen to be broken from outside, while a session runs:
/// what a ``CheckedTransport`` looks at.
///
/// A rule is known by its raw value, which never changes; `docs/transport-rules.md` says of each how it is noticed. That no call
/// blocks is not among them: on a machine that is busy enough, every call takes long.
public enum ContractRule: String, Hashable, Sendable, CaseIterable {
    /// On which thread.
    case eventsOnTheLoop = "events-on-the-loop"
    /// Not from inside a call.
    case toldInALaterTurn = "told-in-a-later-turn"
    /// With itself as who tells it.
    case toldInItsOwnName = "told-in-its-own-name"
    /// What comes after the last call.
    case quietAfterShutdown = "quiet-after-shutdown"

    /// How a scheme is written.
    case schemeWellFormed = "scheme-well-formed"
    /// What is said once holds.
    case traitsConstant = "traits-constant"
    /// What a transport says it costs.
    case capabilitiesPossible = "capabilities-possible"
    /// Of all it tells.
    case addressesCarryTheScheme = "addresses-carry-the-scheme"
    /// Of all it tells.
    case errorsCarryTheScheme = "errors-carry-the-scheme"

    /// One outcome and no second.
    case dialEndsOnce = "dial-ends-once"
    /// No outcome without a dial.
    case dialIsKnown = "dial-is-known"
    /// No outcome of what was taken back.
    case dialQuietAfterCancel = "dial-quiet-after-cancel"
    /// An outcome at all.
    case dialEndsInTime = "dial-ends-in-time"
    /// The answer to a question.
    case placesToldOnce = "places-told-once"

    /// Nothing is told of what is not looked for.
    case routeWhileBrowsing = "route-while-browsing"
    /// Nothing is told of other services.
    case routeOfTheService = "route-of-the-service"
    /// What is known already.
    case routeFoundOnce = "route-found-once"
    /// What is not known yet.
    case routeFoundFirst = "route-found-first"
    /// How good a way looks.
    case qualityInRange = "quality-in-range"

    /// Who comes in.
    case inboundWhileAdvertising = "inbound-while-advertising"
    /// Where it listens, and under which name.
    case listeningWhileAdvertising = "listening-while-advertising"

    /// A pipe is one pipe.
    case pipeOpenedOnce = "pipe-opened-once"
    /// What comes after this side's close.
    case pipeQuietAfterClose = "pipe-quiet-after-close"
    /// What comes after the other side's.
    case pipeClosedIsLast = "pipe-closed-is-last"
    /// The other side finishes once.
    case pipeEndsOnce = "pipe-ends-once"
    /// And means it.
    case nothingAfterTheEnd = "nothing-after-the-end"
    /// What this side wrote before its close has left.
    case pipeDrainsOnce = "pipe-drains-once"
    /// Bytes are told where there are any.
    case noEmptySlices = "no-empty-slices"
    /// What pausing holds up.
    case pausedPipeIsQuiet = "paused-pipe-is-quiet"
    /// What becomes of what is written.
    case writeTakesAll = "write-takes-all"
    /// When there is room again.
    case writableWhenTold = "writable-when-told"
    /// What came in.
    case countsWhatItTells = "counts-what-it-tells"
    /// What went out.
    case countsWhatItTakes = "counts-what-it-takes"

    /// What has to hold, for a person.
    public var sentence: String {
        switch self {
        case .eventsOnTheLoop: "Events are told on the session's loop, never on another thread."
        case .toldInALaterTurn:
            "What a call brings about is told in a later turn, never from inside the call."
        case .toldInItsOwnName:
            "A transport names itself with each event, and a pipe itself with all it tells its handler."
        case .quietAfterShutdown:
            "After `shutdown` has returned nothing is told any more, neither by the transport nor by a pipe of it."
        case .schemeWellFormed: "A scheme is 1 to 15 of a–z and 0–9, a letter first."
        case .traitsConstant: "Scheme and capabilities never change."
        case .capabilitiesPossible: "Sizes and times among the capabilities are more than nothing."
        case .addressesCarryTheScheme: "Every address a transport tells is one of its own scheme."
        case .errorsCarryTheScheme: "Every error a transport tells names it by its scheme."
        case .dialEndsOnce: "A dial has one outcome: a pipe or a failure, told once."
        case .dialIsKnown: "Outcomes are told only of dials that were made."
        case .dialQuietAfterCancel: "Of a dial that was cancelled nothing is told any more."
        case .dialEndsInTime: "The outcome of a dial is told within its timeout."
        case .placesToldOnce: "The places behind an address are told once."
        case .routeWhileBrowsing:
            "Routes and known addresses are told between `browse` and `stopBrowsing`, and at no other time."
        case .routeOfTheService: "Only routes of the service that is browsed for are told."
        case .routeFoundOnce: "A route that was found is not found again before it is lost."
        case .routeFoundFirst: "A route is changed or lost only after it was found."
        case .qualityInRange: "The quality of a route is from 0 to 1."
        case .inboundWhileAdvertising: "Pipes come in only while something is advertised."
        case .listeningWhileAdvertising:
            "Where it listens, and under which name it is seen, a transport tells only while it advertises."
        case .pipeOpenedOnce: "A pipe is told as opened once."
        case .pipeQuietAfterClose:
            "After `close` has returned the pipe's handler is told nothing but `pipeDrained`."
        case .pipeClosedIsLast: "`pipeClosed` is the last that a handler is told."
        case .pipeEndsOnce: "`pipeEnded` is told once."
        case .nothingAfterTheEnd: "After `pipeEnded` nothing is received."
        case .pipeDrainsOnce:
            "`pipeDrained` is told once, after `close(.afterWriting)`, when no bytes wait any more."
        case .noEmptySlices: "What is received is at least one byte."
        case .pausedPipeIsQuiet: "A paused pipe tells at most what was under way already."
        case .writeTakesAll: "`write` takes all bytes out of the queue."
        case .writableWhenTold: "`pipeBecameWritable` is told when the pipe can be written again."
        case .countsWhatItTells:
            "`bytesReceived` counts the bytes handed to the handler, all of them and no others."
        case .countsWhatItTakes:
            "`bytesWritten` counts the bytes taken by `write`, and no more of them wait than were taken."
        }
    }

    /// What was being done when the rule was broken, as far as that can be said of all cases.
    var stage: NighError.Stage {
        switch self {
        case .schemeWellFormed, .capabilitiesPossible: .starting
        case .dialEndsOnce, .dialIsKnown, .dialQuietAfterCancel, .dialEndsInTime, .placesToldOnce: .connecting
        case .routeWhileBrowsing, .routeOfTheService, .routeFoundOnce, .routeFoundFirst, .qualityInRange:
            .browsing
        case .inboundWhileAdvertising, .listeningWhileAdvertising: .advertising
        default: .conversing
        }
    }
}
