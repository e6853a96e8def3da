import Foundation
import NighLoop

/// The transports of the sessions of both modules with Apple's names.
package enum TransportChoice {
    /// The transports of a program that chooses none: those in the environment variable `NIGH_TRANSPORTS`, and without
    /// it all that this machine has.
    package static var byDefault: String {
        ProcessInfo.processInfo.environment["NIGH_TRANSPORTS"]
            ?? TransportRegistry.standard.reachingOtherPrograms
    }

    /// Makes the transports that a list names, as flags take it. Those of plugins are loaded.
    package static func make(_ list: String) throws(NighError) -> [any Transport] {
        try PluginCatalog().makeAll(list, extending: .standard)
    }
}
