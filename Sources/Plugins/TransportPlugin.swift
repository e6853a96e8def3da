@_exported import CNighPlugin
import NighCore

/// Makes a plugin. A plugin is a shared library, built separately from the program, that contains a transport.
///
/// A plugin exports one C function. This is all of it:
///
///     @c(nigh_transport_plugin)
///     public func nighTransportPlugin() -> UnsafePointer<nigh_plugin> {
///         TransportPlugin.describe(scheme: "unix", version: "1.0", capabilities: capabilities) {
///             TransportPlugin.offer(UnixTransport.registryEntry)
///         }
///     }
///
/// docs/guides/writing-a-transport.md goes through it step by step.
public enum TransportPlugin {
    /// Makes the description that the plugin's function returns. It is a few bytes that are never freed, because a
    /// plugin is never unloaded.
    ///
    /// This is compiled into the plugin, so it states the toolchain and the Nigh of the plugin. Everything passed to it
    /// is plain data: when the program reads the description, none of the plugin's Swift code may have run, because it
    /// could have been built for a Nigh with another memory layout.
    ///
    /// - Parameters:
    ///   - scheme: The transport's scheme, the same as in its registry entry and in every transport that it makes.
    ///   - version: The plugin's own version, in any form.
    ///   - capabilities: The capabilities and costs of the transport; see `TransportCapabilities.init(_:)`.
    ///   - makeEntry: Returns the transport, by `offer`. Called at most once, after the program has found that the two
    ///     fit.
    @_alwaysEmitIntoClient  // Otherwise it would state the program's own toolchain and Nigh, and always fit.
    public static func describe(
        scheme: StaticString, version: StaticString, capabilities: nigh_plugin_capabilities,
        makeEntry: @escaping @convention(c) () -> UnsafeMutableRawPointer?
    ) -> UnsafePointer<nigh_plugin> {
        let description = UnsafeMutablePointer<nigh_plugin>.allocate(capacity: 1)
        description.initialize(
            to: nigh_plugin(
                interface: UInt32(NIGH_PLUGIN_INTERFACE), toolchain: nigh_plugin_toolchain(),
                nigh_version: nigh_plugin_nigh_version(),
                nigh_fingerprint: UnsafeRawPointer(_builtFor.utf8Start).assumingMemoryBound(to: CChar.self),
                scheme: UnsafeRawPointer(scheme.utf8Start).assumingMemoryBound(to: CChar.self),
                version: UnsafeRawPointer(version.utf8Start).assumingMemoryBound(to: CChar.self),
                capabilities: capabilities, shared_mark: nighSharedMark(), make_entry: makeEntry))
        return UnsafePointer(description)
    }

    /// Hands the transport to the program. The `makeEntry` of `describe` returns the result.
    public static func offer(_ entry: TransportRegistry.Entry) -> UnsafeMutableRawPointer? {
        Unmanaged.passRetained(OfferedEntry(entry)).toOpaque()
    }

    /// Takes the entry that `offer` handed over.
    static func accept(_ offered: UnsafeMutableRawPointer) -> TransportRegistry.Entry {
        Unmanaged<OfferedEntry>.fromOpaque(offered).takeRetainedValue().entry
    }
}

/// Carries a registry entry through a C function.
private final class OfferedEntry {
    let entry: TransportRegistry.Entry

    init(_ entry: TransportRegistry.Entry) { self.entry = entry }
}

/// Distinguishes one copy of Nigh in a process from another: each has this function, at an address of its own. It is a
/// C function, so that the program can ask the dynamic linker which copy a plugin would get.
@c(nigh_shared_mark)
public func nighSharedMark() -> UnsafeRawPointer {
    let own: @convention(c) () -> UnsafeRawPointer = nighSharedMark
    return unsafeBitCast(own, to: UnsafeRawPointer.self)
}

extension TransportCapabilities {
    /// Converts the capabilities that a plugin describes, so that a plugin states them once.
    public init(_ capabilities: nigh_plugin_capabilities) {
        self.init(
            datagrams: capabilities.datagrams, typicalMTU: Int(capabilities.typical_mtu),
            typicalLatency: .milliseconds(capabilities.typical_latency_ms),
            expectedConnectTime: .milliseconds(capabilities.expected_connect_ms),
            priority: Int(capabilities.priority))
    }
}
