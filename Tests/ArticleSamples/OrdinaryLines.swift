// swift-format-ignore-file
// Lines of ordinary widgets, one declaration each: what a widget of SwiftUI, WidgetKit and App
// Intents is written with, beyond the articles' samples. A line that does not compile here is a
// comment, with the reason; `OrdinaryLinesTests` counts both. What an archive must say of a line
// stands behind it.
import Foundation
import TimelineRuntime

private let now = Date(timeIntervalSince1970: 1_769_860_800)
private let later = Date(timeIntervalSince1970: 1_769_864_400)
private let name = "Spouty"

// MARK: Texts
func l001() -> some View { Text(verbatim: "game.title") }
func l002() -> some View { Text("Level \(7) of \(name)") }
func l003() -> some View { Text(0.25, format: .percent) }
func l004() -> some View { Text(now, format: .dateTime.hour().minute()) }
func l005() -> some View { Text(timerInterval: now...later, countsDown: true) }
func l006() -> some View { Text(timerInterval: now...later, pauseTime: later, countsDown: false, showsHours: false) }
func l007() -> some View { Text(later, style: .offset) }
func l008() -> some View { Text(now...later) }
func l009() -> some View { Text(DateInterval(start: now, end: later)) }
func l010() -> some View { Text("Health: ") + Text(0.5, format: .number).bold() }
func l011() -> some View { Text(name).bold().italic().underline().strikethrough() } // archived: "italic":true, "underline":true, "strikethrough":true
func l012() -> some View { Text(name).font(.system(size: 20, weight: .heavy, design: .rounded)) } // archived: "size":20.0, "weight":"heavy", "design":"rounded"
func l013() -> some View { Text(name).font(.system(.title, design: .monospaced, weight: .bold)) } // archived: "textStyle":"title", "weight":"bold", "design":"monospaced"
func l014() -> some View { Text(name).font(.custom("Avenir", size: 12)).fontWeight(.semibold) } // archived: "name":"Avenir", "fontWeight":"semibold"
func l015() -> some View { Text(name).font(.headline.weight(.bold).monospacedDigit()) } // archived: "textStyle":"headline", "hasMonospacedDigits":true
func l016() -> some View { Text(name).lineLimit(2).minimumScaleFactor(0.5).multilineTextAlignment(.center) } // archived: "textAlignment":"center"
func l017() -> some View { Text(name).truncationMode(.tail).textCase(.uppercase) } // archived: "truncation":"tail"
func l018() -> some View { Text(name).monospacedDigit().kerning(1).baselineOffset(2) } // archived: "monospacedDigits":true, "kerning":1.0, "baselineOffset":2.0
func l019() -> some View { Text(name).foregroundColor(.secondary) } // archived: "foreground":"secondary"
func l020() -> some View { Text("Greeting", tableName: "Game", comment: "Said at the start") }
func l021() -> some View { Text(Image(systemName: "bolt")) + Text(" charged") }
func l022() -> some View { Text("\(later, style: .relative) left") }
func l023() -> some View { Text(LocalizedStringResource("greeting", defaultValue: "Hello")) }

// MARK: Images and labels
func l024() -> some View { Image("hero").resizable().scaledToFit() } // archived: "resizable":true, "contentMode":"fit"
func l025() -> some View { Image("hero").resizable().aspectRatio(contentMode: .fill).clipped() } // archived: "contentMode":"fill", "clip":"rectangle"
func l026() -> some View { Image(systemName: "bolt.fill").imageScale(.large).symbolRenderingMode(.hierarchical) } // archived: "imageScale":"large", "symbolRendering":"hierarchical"
func l027() -> some View { Image("hero").renderingMode(.template).interpolation(.high) } // archived: "template":true, "interpolation":"high"
func l028() -> some View { Image("hero").resizable().widgetAccentedRenderingMode(.desaturated) } // archived: "accentedRendering":"desaturated"
func l029() -> some View { Image(decorative: "paper") } // archived: "accessibilityHidden":true
func l030() -> some View { Label("Health", systemImage: "heart.fill") }
func l031() -> some View { Label(name, systemImage: "heart").labelStyle(.iconOnly) }
func l032() -> some View { Label { Text(name) } icon: { Image("hero") } }

// MARK: Gauges and progress
func l033() -> some View { Gauge(value: 0.5) { Text("HP") } currentValueLabel: { Text("50") } }
func l034() -> some View { Gauge(value: 3, in: 0...10) { Text("HP") } currentValueLabel: { Text("3") } minimumValueLabel: { Text("0") } maximumValueLabel: { Text("10") } }
func l035() -> some View { Gauge(value: 0.5) { Image(systemName: "heart") }.gaugeStyle(.accessoryCircularCapacity) }
func l036() -> some View { ProgressView(value: 0.3) }
func l037() -> some View { ProgressView(value: 3, total: 10) { Text("Quest") } currentValueLabel: { Text("3") } }
func l038() -> some View { ProgressView(timerInterval: now...later, countsDown: false) }
func l039() -> some View { ProgressView("Loading", value: 0.5).progressViewStyle(.circular) } // archived: "progressStyle":"circular"
func l040() -> some View { ProgressView() }

// MARK: Containers
func l041() -> some View { Group { Text("a"); Text("b") }.font(.caption) }
func l042() -> some View { ForEach(["a", "b"], id: \.self) { Text($0) } }
func l043() -> some View { ForEach(0..<3) { Text("\($0)") } }
func l044() -> some View { Grid(alignment: .leading) { GridRow { Text("a"); Text("b").gridCellColumns(2) } } } // archived: "gridColumns":2.0
func l045() -> some View { LazyVStack(alignment: .leading, spacing: 2) { Text(name) } }
func l046() -> some View { LazyHStack { Text(name) } }
func l047() -> some View { VStack { Text("a"); Divider(); Spacer(minLength: 4); Text("b") } } // archived: "minWidth":4.0
func l048() -> some View { ViewThatFits { Text("a long title"); Text("short") } }
func l049() -> some View { ZStack { AccessoryWidgetBackground(); Text(name) } }
func l050() -> some View { GeometryReader { proxy in Text(name).frame(width: Double(proxy.size.width) / 2) } } // archived: "width":79.0

// MARK: Shapes and styles
func l051() -> some View { Circle().fill(.red).frame(width: 10, height: 10) }
func l052() -> some View { Circle().trim(from: 0, to: 0.7).stroke(.green, lineWidth: 4).rotationEffect(.degrees(-90)) }
func l053() -> some View { RoundedRectangle(cornerRadius: 8).strokeBorder(.secondary, lineWidth: 1) } // archived: "cornerRadius":8.0, "lineWidth":1.0
func l054() -> some View { Capsule().fill(.blue.gradient) } // archived: "color":"blue/0.8"
func l055() -> some View { ContainerRelativeShape().fill(.quaternary) } // archived: "kind":"containerRelative", "_0":"quaternary"
func l056() -> some View { LinearGradient(colors: [.red, .blue], startPoint: .top, endPoint: .bottom) }
func l057() -> some View { RadialGradient(colors: [.white, .black], center: .center, startRadius: 1, endRadius: 50) } // archived: "kind":"radial", "geometry":[0.5,0.5,1.0,50.0]
func l058() -> some View { AngularGradient(colors: [.red, .orange, .red], center: .center) } // archived: "kind":"angular", "geometry":[0.5,0.5,0.0,360.0]
func l059() -> some View { Rectangle().fill(LinearGradient(gradient: Gradient(stops: [.init(color: .red, location: 0)]), startPoint: .leading, endPoint: .trailing)) } // archived: "stops":[{"color":"red","location":0.0}]
func l060() -> some View { Color(red: 0.1, green: 0.2, blue: 0.3, opacity: 0.5) } // archived: "color":"#1A334D/0.5"
func l061() -> some View { Color(hue: 0.5, saturation: 1, brightness: 1) } // archived: "color":"#00FFFF"
func l062() -> some View { Color.indigo.opacity(0.4) } // archived: "color":"indigo/0.4"

// MARK: Modifiers
func l063() -> some View { Text(name).frame(maxWidth: .infinity, maxHeight: .infinity, alignment: .topLeading) }
func l064() -> some View { Text(name).padding().background(.thinMaterial, in: RoundedRectangle(cornerRadius: 8)) }
func l065() -> some View { Text(name).background(Color.red).padding(.horizontal, 8) }
func l066() -> some View { Text(name).background { Image("paper").resizable() } }
func l067() -> some View { Text(name).overlay(alignment: .bottomTrailing) { Image(systemName: "star") } }
func l068() -> some View { Image("hero").clipShape(Circle()).overlay { Circle().stroke(.white, lineWidth: 2) } }
func l069() -> some View { Image("hero").clipShape(.rect(cornerRadius: 12)).shadow(radius: 3) } // archived: "clipRadius":12.0, "shadow":[3.0,0.0,0.0], "shadowColor":"black/0.33"
func l070() -> some View { Text(name).opacity(0.6).offset(x: 2, y: -2).blur(radius: 1) } // archived: "blur":1.0
func l071() -> some View { Text(name).scaleEffect(1.2).zIndex(1) } // archived: "scale":[1.2,1.2], "zIndex":1.0
func l072() -> some View { Text(name).border(.red, width: 2).cornerRadius(4) } // archived: "lineWidth":2.0, "clip":"roundedRectangle", "clipRadius":4.0
func l073() -> some View { Text(name).fixedSize(horizontal: false, vertical: true).layoutPriority(1) } // archived: "fixedHeight":true, "layoutPriority":1.0
func l074() -> some View { Text(name).accessibilityLabel("Hero").accessibilityValue("Spouty").accessibilityHidden(false) } // archived: "accessibilityLabel":"Hero", "accessibilityValue":"Spouty"
func l075() -> some View { Text(name).accessibilityLabel(Text(name)) } // archived: "accessibilityLabel":"Spouty"
func l076() -> some View { Text(name).foregroundStyle(.tint).tint(.purple) } // archived: "foreground":"tint", "tint":"purple"
func l077() -> some View { Text(name).environment(\.colorScheme, .dark) }
func l078() -> some View { Text(name).environment(\.locale, Locale(identifier: "de")) }
func l079() -> some View { Text(name).modifier(Card()) } // archived: "padding":{"top":4.0, "_0":"fill/0.25"
struct Card: ViewModifier { func body(content: Content) -> some View { content.padding(4).background(.fill.tertiary) } }
func l080() -> some View { Text("42").contentTransition(.numericText(value: 42)).animation(.spring(duration: 0.2), value: 42) } // archived: "contentTransition":"numericText", "animation":"spring 0.2"
func l081() -> some View { Text(name).transition(.push(from: .bottom)).id(name) } // archived: "transition":"push bottom", "id":"Spouty"
func l082() -> some View { Text(name).redacted(reason: .invalidated) }
func l083() -> some View { Text(name).containerBackground(.fill.tertiary, for: .widget) } // archived: "marks":["containerBackground"]
func l084() -> some View { Text(name).widgetLabel { Gauge(value: 0.5) { Text("HP") } } } // archived: "stack":"widgetLabel"
func l085() -> some View { Text(name).widgetLabel("Spouty") }
func l086() -> some View { Text(name).dynamicTypeSize(.large) } // archived: "dynamicTypeSize":"large"
func l087() -> some View { Text(name).hidden().ignoresSafeArea() } // archived: "hidden":true

// MARK: Controls
func l088() -> some View { Button("Charge", systemImage: "bolt", intent: SuperCharge()) }
func l089() -> some View { Toggle("Milk", isOn: true, intent: ToggleTodoIntent(1)) }
func l090() -> some View { Link("Open", destination: URL(string: "game:///")!) }

// MARK: Environment
struct L091: View { @Environment(\.locale) var locale; var body: some View { Text(locale.identifier) } }
struct L092: View { @Environment(\.dynamicTypeSize) var size; var body: some View { Text(size.isAccessibilitySize ? "big" : "small") } }
struct L093: View { @Environment(\.widgetContentMargins) var margins; var body: some View { Text(name).padding(margins) } }
struct L094: View { @Environment(\.levelOfDetail) var detail; var body: some View { Text(detail == .simplified ? "far" : "near") } }
struct L095: View { @Environment(\.showsWidgetLabel) var shows; var body: some View { Text(shows ? "label" : "none") } }
struct L096: EnvironmentKey { static let defaultValue = "plain" }
extension EnvironmentValues { var l097: String { get { self[L096.self] } set { self[L096.self] = newValue } } }
func l098(_ context: TimelineProviderContext) -> [ColorScheme]? { context.environmentVariants.colorScheme }

// MARK: Widgets and controls
struct L099: WidgetBundle { var hasHeroes = true; var body: some Widget { GameStatusWidget(); if hasHeroes { EmojiRangerWidget() }; L101(); L106() } }
func l100() -> some WidgetConfiguration { GameStatusWidget().body.contentMarginsDisabled().promptsForUserConfiguration() }
struct L101: Widget { var body: some WidgetConfiguration { EmptyWidgetConfiguration() } }
func l102() -> some WidgetConfiguration { GameStatusWidget().body.supportedMountingStyles([.elevated]).widgetTexture(.paper) }
func l103() -> some WidgetConfiguration { GameStatusWidget().body.onBackgroundURLSessionEvents(matching: "game") { _, completion in completion() } }
func l104() { WidgetCenter.shared.reloadTimelines(ofKind: "com.mygame.game-status") }
func l105() async throws -> [WidgetInfo] { try await WidgetCenter.shared.currentConfigurations() }
struct L106: ControlWidget { var body: some ControlWidgetConfiguration { StaticControlConfiguration(kind: "lamp", provider: LampValue()) { isOn in ControlWidgetToggle("Lamp", isOn: isOn, action: SetLamp()) { isOn in Label(isOn ? "On" : "Off", systemImage: "lightbulb") } }.displayName("Lamp") } }
struct LampValue: ControlValueProvider { var previewValue: Bool { false }; func currentValue() async throws -> Bool { true } }
func l107() -> some ControlWidgetConfiguration { StaticControlConfiguration(kind: "charge") { ControlWidgetButton(action: SuperCharge()) { Label("Charge", systemImage: "bolt") } } }

// MARK: Intents
struct SetLamp: SetValueIntent { static var title: LocalizedStringResource = "Set the lamp"; @Parameter(title: "On") var value: Bool; func perform() async throws -> some IntentResult { .result() } }
struct L108: AppIntent { static var title: LocalizedStringResource = "Count"; func perform() async throws -> some IntentResult & ReturnsValue<Int> & ProvidesDialog { .result(value: 3, dialog: "Three") } }
struct L109: AppIntent { static var title: LocalizedStringResource = "Say"; func perform() async throws -> some IntentResult & ProvidesDialog { .result(dialog: "Done") } }
struct L110: WidgetConfigurationIntent { static var title: LocalizedStringResource = "Choose"; @Parameter(title: "Level", default: 3, inclusiveRange: (1, 10)) var level: Int }
struct L111: WidgetConfigurationIntent { static var title: LocalizedStringResource = "Choose"; @Parameter(title: "Team", optionsProvider: Teams()) var team: String? }
struct Teams: DynamicOptionsProvider { func results() async throws -> [String] { ["Red", "Blue"] } }
struct L112: WidgetConfigurationIntent { static var title: LocalizedStringResource = "Choose"; @Parameter(title: "Site") var site: URL?; @Parameter(title: "Day") var day: Date? }
struct L113: WidgetConfigurationIntent { static var title: LocalizedStringResource = "Choose"; @Parameter(title: "City", default: "Oslo") var city: String; static var parameterSummary: some ParameterSummary { Summary("Show \(\.$city)") } }
enum L114: Int, AppEnum { case one = 1, two; static var typeDisplayRepresentation: TypeDisplayRepresentation = "Number"; static var caseDisplayRepresentations: [L114: DisplayRepresentation] = [.one: "One", .two: DisplayRepresentation(title: "Two", subtitle: "Twice one")] }
enum L138: String, AppEnum { case calm, angry; static var typeDisplayRepresentation: TypeDisplayRepresentation = "Mood"; static var caseDisplayRepresentations: [L138: DisplayRepresentation] = [.calm: "Calm", .angry: "Angry"] }
let l115 = DisplayRepresentation(title: "Spouty", subtitle: "Whale", image: .init(systemName: "fish"))
struct L116: AppEntity { let id: Int; @Property(title: "Name") var name: String; static var typeDisplayRepresentation: TypeDisplayRepresentation = "Hero"; static var defaultQuery = L117(); var displayRepresentation: DisplayRepresentation { "\(id)" } }
struct L117: EntityQuery { func entities(for identifiers: [Int]) async throws -> [L116] { [] } }
let l118 = IntentDescription("Charges the hero.", categoryName: "Fight")

// MARK: What else the articles name
func l123() -> some View { Text(name).privacySensitive().invalidatableContent().widgetAccentable().widgetURL(URL(string: "game:///")) }
func l124() -> some View { Group { Text(name).unredacted(); Text(name).redacted(reason: .privacy); Text(name).redacted(reason: .placeholder) } }
func l125() -> some View { HStack { Button("Charge", intent: SuperCharge()); Link(destination: URL(string: "game:///")!) { Text(name) } } }
struct L126: View { @Environment(\.isLuminanceReduced) var isDim; @Environment(\.redactionReasons) var reasons; @Environment(\.colorScheme) var scheme; @Environment(\.showsWidgetContainerBackground) var shows; var body: some View { Text("\(isDim) \(reasons.isEmpty) \(scheme) \(shows)") } }
func l127() -> some WidgetConfiguration { GameStatusWidget().body.disfavoredLocations([.standBy], for: [.systemSmall]).containerBackgroundRemovable(false).pushHandler(L128.self) }
struct L128: WidgetPushHandler { func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo]) { _ = pushInfo.token } }
struct L129: ControlPushHandler { func pushTokensDidChange(controls: [ControlInfo]) { _ = controls.map(\.pushInfo?.token) } }
func l130() { WidgetCenter.shared.reloadAllTimelines(); WidgetCenter.shared.invalidateConfigurationRecommendations() }
func l131() { WidgetCenter.shared.invalidateRelevance(ofKind: "card"); WidgetCenter.shared.getCurrentConfigurations { result in _ = try? result.get() } }
struct L132: RelevanceEntry { var title: String }
struct L133: RelevanceEntriesProvider { func relevance() async throws -> WidgetRelevance<TitledIntent> { WidgetRelevance([WidgetRelevanceAttribute(configuration: TitledIntent(), context: .date(now))]) }; func entry(configuration: TitledIntent, context: Context) async throws -> L132 { L132(title: configuration.title) }; func placeholder(context: Context) -> L132 { L132(title: "…") } }
func l134() -> some WidgetConfiguration { RelevanceConfiguration(kind: "card", provider: L133()) { entry in Text(entry.title) } }
let l135 = WidgetFamily.allCases
func l139() -> some View { TimelineRuntime.Text(name) }
struct L120: WidgetConfigurationIntent { static var title: LocalizedStringResource = "Choose"; @Parameter(title: "Distance") var distance: Measurement<UnitLength>? }
func l137() -> some View { LazyVGrid(columns: [GridItem(.adaptive(minimum: 40))]) { Text(name) } }

// MARK: What does not compile
// l119: EntityPropertyQuery is for the Find actions of Shortcuts; no widget asks for one.
// struct L119: EntityPropertyQuery { static var properties = QueryProperties { Property(\L116.$name) { EqualToComparator { $0 } } } }
// l121: a family that no table lists is valid here, so a switch needs a default.
// func l121(_ family: WidgetFamily) -> Int { switch family { case .systemSmall: 1; @unknown default: 0 } }
// l122: a path of one's own depends on a size that no archive knows.
// struct L122: Shape { func path(in rect: CGRect) -> Path { Path(ellipseIn: rect) } }
// l136: no system here tells of sleep, so a widget is relevant at dates only.
// let l136 = RelevantContext.sleep(.bedtime)
