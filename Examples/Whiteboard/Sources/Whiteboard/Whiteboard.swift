import Nigh

/// A whiteboard on which all connected peers draw: a library that uses its program's session. The strokes travel in a
/// channel of their own, so the program's messages stay the program's.
public actor Whiteboard {
    /// A line from one point to another.
    public struct Stroke: Codable, Hashable, Sendable {
        /// The coordinates of the points it goes through, x and y in turn.
        public var points: [Double]

        /// Creates a line through these points.
        public init(_ points: [Double]) { self.points = points }
    }

    private let session: Session
    private let channel: Channel
    /// All strokes, in the order in which they came.
    public private(set) var strokes: [Stroke] = []
    private let onStroke: @Sendable (Stroke) -> Void

    /// Begins a whiteboard. Calls `onStroke` for each stroke of others.
    public init(in session: Session, onStroke: @escaping @Sendable (Stroke) -> Void = { _ in })
        throws(NighError)
    {
        self.session = session
        channel = try session.channel("whiteboard")
        self.onStroke = onStroke
        try session.answer("whiteboard.strokes") { [weak self] (_: Bool, _) in await self?.strokes ?? [] }
    }

    /// Draws for all.
    public func draw(_ stroke: Stroke) async throws(PartialSendError) {
        strokes.append(stroke)
        try await channel.broadcast(stroke)
    }

    /// Takes the strokes of others until the session is closed or the task is cancelled. A peer that comes is asked for
    /// what is on its whiteboard.
    public func run() async {
        async let drawing: Void = takeStrokes()
        for await case .connected(let peer) in session.events {
            do throws(NighError) {
                for stroke in try await peer.ask("whiteboard.strokes", true, for: [Stroke].self) {
                    add(stroke)
                }
            } catch {
                continue
            }
        }
        await drawing
    }

    private func takeStrokes() async {
        for await stroke in channel.messages(of: Stroke.self) { add(stroke.content) }
    }

    private func add(_ stroke: Stroke) {
        guard !strokes.contains(stroke) else { return }
        strokes.append(stroke)
        onStroke(stroke)
    }
}
