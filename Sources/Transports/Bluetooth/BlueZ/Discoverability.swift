import NighCore
import NighUV

/// Keeps the adapter discoverable while that is wanted, and leaves it as it was found.
///
/// bluetoothd switches it off again by itself after some minutes, or when it starts anew; then it is switched on again, but not
/// against a person who does so. Confined to its loop; hence `@unchecked Sendable`.
final class Discoverability: @unchecked Sendable {
    /// Sooner than this after it was switched on, who switches it off means it.
    private static let shortest = Moment.Span.seconds(20)

    private let bluez: BlueZ
    private let loop: UVEventLoop
    private var isWanted = false
    /// The adapter that was switched on, when, and in which life of bluetoothd.
    private var switched: (path: String, at: Moment, generation: Int)?
    private var wasSeenOn = false
    private(set) var refusal: BusFault?

    init(_ bluez: BlueZ, on loop: UVEventLoop) {
        self.bluez = bluez
        self.loop = loop
    }

    func want(_ wanted: Bool) {
        isWanted = wanted
        guard !wanted else { return proceed() }
        guard let adapter = bluez.ground.adapter, adapter.path == switched?.path else {
            return switched = nil
        }
        switched = nil
        wasSeenOn = false
        bluez.set("Discoverable", .boolean(false))
    }

    /// The adapter is another, or says something else of itself.
    func groundChanged() { proceed() }

    private func proceed() {
        guard isWanted, let adapter = bluez.ground.adapter else { return }
        guard !adapter.isDiscoverable else { return wasSeenOn = true }
        if let switched, switched.path == adapter.path, switched.generation == bluez.generation {
            // Not on yet, or switched off by somebody.
            guard wasSeenOn, loop.now - switched.at >= Self.shortest else { return }
        }
        switched = (adapter.path, loop.now, bluez.generation)
        wasSeenOn = false
        bluez.set("Discoverable", .boolean(true)) { [weak self] result in
            guard case .failure(let fault) = result else {
                self?.refusal = nil
                return
            }
            self?.refusal = fault
            self?.switched = nil
        }
    }
}
