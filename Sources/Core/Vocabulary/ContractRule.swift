/// The rules of the contract of ``Transport`` and ``Pipe`` that a ``CheckedTransport`` checks while a session runs.
///
/// These are the rules whose breaking can be seen from outside. A rule is identified by its raw value, which never
/// changes; `docs/reference/transport-rules.md` says how each broken rule is noticed. That no call blocks is not among
/// them, because on a busy machine every call can take long.
public enum ContractRule: String, Hashable, Sendable, CaseIterable {
    /// Events are reported on the session's loop.
    case eventsOnTheLoop = "events-on-the-loop"
    /// The result of a call is reported in a later turn, never from inside the call.
    case toldInALaterTurn = "told-in-a-later-turn"
    /// Each event names the transport that reports it, each call to a handler the pipe that makes it.
    case toldInItsOwnName = "told-in-its-own-name"
    /// Nothing is reported after `shutdown` has returned.
    case quietAfterShutdown = "quiet-after-shutdown"

    /// A scheme is 1 to 15 characters of a–z and 0–9, and begins with a letter.
    case schemeWellFormed = "scheme-well-formed"
    /// Scheme and capabilities never change.
    case traitsConstant = "traits-constant"
    /// Sizes and times among the capabilities are greater than zero.
    case capabilitiesPossible = "capabilities-possible"
    /// Every address that a transport reports has the transport's scheme.
    case addressesCarryTheScheme = "addresses-carry-the-scheme"
    /// Every error that a transport reports names the transport's scheme.
    case errorsCarryTheScheme = "errors-carry-the-scheme"

    /// A dial has one outcome, reported once.
    case dialEndsOnce = "dial-ends-once"
    /// Outcomes are reported only for dials that were made.
    case dialIsKnown = "dial-is-known"
    /// Nothing is reported for a dial that was cancelled.
    case dialQuietAfterCancel = "dial-quiet-after-cancel"
    /// The outcome of a dial is reported within its timeout.
    case dialEndsInTime = "dial-ends-in-time"
    /// The places behind an address are reported once.
    case placesToldOnce = "places-told-once"

    /// Routes and known addresses are reported only while the transport browses.
    case routeWhileBrowsing = "route-while-browsing"
    /// Only routes of the service that is browsed for are reported.
    case routeOfTheService = "route-of-the-service"
    /// A route that was found is not found again before it is lost.
    case routeFoundOnce = "route-found-once"
    /// A route is changed or lost only after it was found.
    case routeFoundFirst = "route-found-first"
    /// The quality of a route is from 0 to 1.
    case qualityInRange = "quality-in-range"

    /// Pipes come in only while something is advertised.
    case inboundWhileAdvertising = "inbound-while-advertising"
    /// A transport reports its listening addresses and its advertised name only while it advertises.
    case listeningWhileAdvertising = "listening-while-advertising"

    /// A pipe is reported as opened once.
    case pipeOpenedOnce = "pipe-opened-once"
    /// After `close` has returned, the pipe reports nothing but `pipeDrained`.
    case pipeQuietAfterClose = "pipe-quiet-after-close"
    /// `pipeClosed` is the last call to a handler.
    case pipeClosedIsLast = "pipe-closed-is-last"
    /// `pipeEnded` is reported once.
    case pipeEndsOnce = "pipe-ends-once"
    /// Nothing is received after `pipeEnded`.
    case nothingAfterTheEnd = "nothing-after-the-end"
    /// `pipeDrained` is reported once, after `close(.afterWriting)`, when no bytes wait any more.
    case pipeDrainsOnce = "pipe-drains-once"
    /// A received slice has at least one byte.
    case noEmptySlices = "no-empty-slices"
    /// A paused pipe reports at most the bytes that were already on their way.
    case pausedPipeIsQuiet = "paused-pipe-is-quiet"
    /// `write` takes all bytes out of the queue.
    case writeTakesAll = "write-takes-all"
    /// `pipeBecameWritable` is reported when the pipe can be written again.
    case writableWhenTold = "writable-when-told"
    /// `bytesReceived` counts exactly the bytes that the handler got.
    case countsWhatItTells = "counts-what-it-tells"
    /// `bytesWritten` counts the bytes taken by `write`, and no more bytes wait than were taken.
    case countsWhatItTakes = "counts-what-it-takes"

    /// The rule as a sentence, for people.
    public var sentence: String {
        switch self {
        case .eventsOnTheLoop: "Events are reported on the session's loop, never on another thread."
        case .toldInALaterTurn:
            "The result of a call is reported in a later turn, never from inside the call."
        case .toldInItsOwnName:
            "Each event names the transport that reports it, each call to a handler the pipe that makes it."
        case .quietAfterShutdown:
            "After `shutdown` has returned, neither the transport nor any of its pipes reports anything."
        case .schemeWellFormed: "A scheme is 1 to 15 characters of a–z and 0–9, and begins with a letter."
        case .traitsConstant: "Scheme and capabilities never change."
        case .capabilitiesPossible: "Sizes and times among the capabilities are greater than zero."
        case .addressesCarryTheScheme: "Every address that a transport reports has the transport's scheme."
        case .errorsCarryTheScheme: "Every error that a transport reports names the transport's scheme."
        case .dialEndsOnce: "A dial has one outcome, a pipe or a failure, reported once."
        case .dialIsKnown: "Outcomes are reported only for dials that were made."
        case .dialQuietAfterCancel: "Nothing is reported for a dial that was cancelled."
        case .dialEndsInTime: "The outcome of a dial is reported within its timeout."
        case .placesToldOnce: "The places behind an address are reported once."
        case .routeWhileBrowsing:
            "Routes and known addresses are reported only between `browse` and `stopBrowsing`."
        case .routeOfTheService: "Only routes of the service that is browsed for are reported."
        case .routeFoundOnce: "A route that was found is not found again before it is lost."
        case .routeFoundFirst: "A route is changed or lost only after it was found."
        case .qualityInRange: "The quality of a route is from 0 to 1."
        case .inboundWhileAdvertising: "Pipes come in only while something is advertised."
        case .listeningWhileAdvertising:
            "A transport reports its listening addresses and its advertised name only while it advertises."
        case .pipeOpenedOnce: "A pipe is reported as opened once."
        case .pipeQuietAfterClose:
            "After `close` has returned, the pipe reports nothing but `pipeDrained`."
        case .pipeClosedIsLast: "`pipeClosed` is the last call to a handler."
        case .pipeEndsOnce: "`pipeEnded` is reported once."
        case .nothingAfterTheEnd: "After `pipeEnded` nothing is received."
        case .pipeDrainsOnce:
            "`pipeDrained` is reported once, after `close(.afterWriting)`, when no bytes wait any more."
        case .noEmptySlices: "A received slice has at least one byte."
        case .pausedPipeIsQuiet: "A paused pipe reports at most the bytes that were already on their way."
        case .writeTakesAll: "`write` takes all bytes out of the queue."
        case .writableWhenTold: "`pipeBecameWritable` is reported when the pipe can be written again."
        case .countsWhatItTells:
            "`bytesReceived` counts exactly the bytes that the handler got."
        case .countsWhatItTakes:
            "`bytesWritten` counts the bytes taken by `write`, and no more bytes wait than were taken."
        }
    }

    /// The stage of the error that reports the broken rule: the one that fits every case of the rule.
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
