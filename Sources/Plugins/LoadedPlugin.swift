import NighCore

/// A transport that was loaded from a file.
public struct LoadedPlugin: Sendable {
    /// The path of the file.
    public let path: String
    /// The plugin's own version.
    public let version: String
    /// The capabilities and costs of the transport, according to the plugin.
    public let capabilities: TransportCapabilities
    /// The transport as an entry for a registry.
    public let entry: TransportRegistry.Entry

    /// The transport's scheme.
    public var scheme: String { entry.scheme }

    /// Loads the plugin in the file at `path`. It reads the disk, so do not call it on a session's loop. Fails, in one
    /// sentence that says what to do, if the file is not a plugin, if others may write it, if it was built with another
    /// compiler or for another Nigh than this program, and in programs that cannot load any plugin. A loaded library
    /// stays loaded.
    public init(path: String) throws(NighError) {
        let file = PluginFile(path)
        let description = try file.open()
        try Self.check(description, of: file)
        try self.init(description.pointee, of: file)
    }

    /// Compares the compiler and the Nigh that the plugin was built with. Nothing behind the first four bytes may be
    /// read before they have been checked.
    private static func check(
        _ description: UnsafePointer<nigh_plugin>, of file: PluginFile
    ) throws(NighError) {
        let interface = UnsafeRawPointer(description).load(as: UInt32.self)
        let own = UInt32(NIGH_PLUGIN_INTERFACE)
        guard interface == own else {
            throw file.refusal(
                "it speaks version \(interface) of the plugin interface, and this program version \(own)",
                advice: PluginFile.rebuildAdvice)
        }
        let plugin = description.pointee
        let (toolchain, ownToolchain) = (text(plugin.toolchain), text(nigh_plugin_toolchain()))
        guard toolchain == ownToolchain else {
            throw file.refusal(
                "it was built by another Swift toolchain (\(toolchain)) than this program (\(ownToolchain))",
                advice: PluginFile.rebuildAdvice)
        }
        let nigh = versionText(plugin.nigh_version, plugin.nigh_fingerprint)
        let ownNigh = versionText(
            nigh_plugin_nigh_version(),
            UnsafeRawPointer(TransportPlugin._builtFor.utf8Start).assumingMemoryBound(to: CChar.self))
        guard nigh == ownNigh else {
            throw file.refusal(
                "it was built for another Nigh (\(nigh)) than this program's (\(ownNigh))",
                advice: PluginFile.rebuildAdvice)
        }
        guard plugin.shared_mark == nighSharedMark() else {
            throw file.refusal(
                "it contains its own copy of Nigh",
                advice:
                    "let its target depend only on Nigh's product NighShared, and rebuild it")
        }
    }

    private init(_ plugin: nigh_plugin, of file: PluginFile) throws(NighError) {
        let scheme = Self.text(plugin.scheme)
        let spans = [plugin.capabilities.typical_latency_ms, plugin.capabilities.expected_connect_ms]
        guard spans.allSatisfy({ (0...1e9).contains($0) }) else {
            throw file.refusal("the times that it states are impossible", advice: PluginFile.reportAdvice)
        }
        guard let offered = plugin.make_entry() else {
            throw file.refusal("it provides no transport", advice: PluginFile.reportAdvice)
        }
        let entry = TransportPlugin.accept(offered)
        guard entry.scheme == scheme, TransportSpec.isScheme(scheme) else {
            throw file.refusal(
                "it describes a transport \"\(scheme)\", but provides \"\(entry.scheme)\"",
                advice: PluginFile.reportAdvice)
        }
        path = file.path
        version = Self.text(plugin.version)
        capabilities = TransportCapabilities(plugin.capabilities)
        self.entry = entry
    }

    private static func versionText(_ version: UnsafePointer<CChar>?, _ fingerprint: UnsafePointer<CChar>?)
        -> String
    {
        "version \(text(version)), interface \(text(fingerprint))"
    }

    private static func text(_ text: UnsafePointer<CChar>?) -> String {
        text.map { String(cString: $0) } ?? "unknown"
    }
}
